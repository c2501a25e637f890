"""Laws that every dialect keeps, and the means to check them on your own."""
