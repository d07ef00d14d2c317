"""What strangers can write, made to hurt: every parser of it neither crashes nor slows down."""
