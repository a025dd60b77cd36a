"""Write a design as C++."""
