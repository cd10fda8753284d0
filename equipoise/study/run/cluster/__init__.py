"""The engine of a cluster: packs of runs as Ray tasks.

`connection` finds the cluster and refuses one that would compute something else; `engine` hands loads to it; `task` is
what a node does with a load; `order` is what goes there, `parcels` what comes back; `workplace` is a folder on a node.
"""
