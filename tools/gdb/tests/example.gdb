# The session of docs/gdb.md.
echo (gdb) info waitword\n
info waitword
echo (gdb) print queue_lock\n
print queue_lock
