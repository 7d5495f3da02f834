"""Knowledge that agents share, as the MEK protocol has it: extraction, items, signatures, absorption."""
