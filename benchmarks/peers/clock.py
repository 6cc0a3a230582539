"""The CPU time of a call, as the scripts measure it that run a peer on one thread."""

import statistics
import time


def milliseconds(run):
    """The median of seven times a call, each the mean over 50 ms of calls; after one that does not
    count.
    """
    run()
    times = []
    for _ in range(7):
        begin, count = time.process_time(), 0
        while count == 0 or time.process_time() - begin < 0.05:
            run()
            count += 1
        times.append((time.process_time() - begin) / count)
    return statistics.median(times) * 1e3
