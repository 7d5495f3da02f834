"""What comes in from elsewhere: chat messages of other libraries, and files of conversations."""
