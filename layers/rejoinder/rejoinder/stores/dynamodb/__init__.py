"""The table in DynamoDB: its shape, one named conditional write per transition, and the store over both."""
