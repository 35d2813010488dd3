"""Each rule of the protocol, switched off: the named checker must catch it, and only then."""

import pytest

from rejoinder.simulator.explore import explore
from rejoinder.simulator.mutant import Mutant
from rejoinder.simulator.mutants import MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_without_its_rule_the_protocol_breaks(mutant: Mutant) -> None:
    """Killed, and by the checker of the promise that rests on the rule."""
    with mutant.applied() as stage:
        result = explore(mutant.bound, stage)
    assert result.broken is not None, f"{mutant.name} survived: {mutant.rule}\n{result}"
    assert result.broken.checker == mutant.killer, str(result)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_with_its_rule_it_does_not(mutant: Mutant) -> None:
    """The same bound, explored to its end with the rule in place: it was the rule that made the difference."""
    result = explore(mutant.bound)
    assert result.broken is None, str(result)
    assert result.complete
