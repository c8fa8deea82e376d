"""What commands print for people while they run and at their end, in colour where the terminal has it."""
