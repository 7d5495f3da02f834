"""What comes from elsewhere: messages of other libraries, files of conversations, memories of other systems."""
