"""Files of slots: lines of text that hold, for each variable, how many values there are and then
the values.
"""
