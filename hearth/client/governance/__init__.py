"""The council, its guardian, and the changes that they announce, carry out and veto."""
