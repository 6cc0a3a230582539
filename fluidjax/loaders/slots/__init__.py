"""Files of slots: lines of text that hold, for each variable, the number of its values and then the
values.
"""
