"""What a transaction would do, said before it is signed."""
