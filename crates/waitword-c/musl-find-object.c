/* What libgcc_eh asks glibc: which file an address is in, and where its unwind table is. musl
 * has no such function. Debian's libgcc_eh was compiled for glibc, and needs it. */
#define _GNU_SOURCE
#include <link.h>
#include <stddef.h>

struct dl_find_object {
    unsigned long long flags;
    void *map_start, *map_end;
    struct link_map *link_map;
    void *eh_frame;
    unsigned long long reserved[7];
};

struct search {
    ElfW(Addr) address;
    struct dl_find_object *found;
};

static int look(struct dl_phdr_info *file, size_t size, void *data) {
    struct search *search = data;
    ElfW(Addr) start = -1, end = 0, table = 0;
    (void)size;
    for (int n = 0; n < file->dlpi_phnum; n++) {
        const ElfW(Phdr) *part = &file->dlpi_phdr[n];
        ElfW(Addr) at = file->dlpi_addr + part->p_vaddr;
        if (part->p_type == PT_GNU_EH_FRAME)
            table = at;
        if (part->p_type != PT_LOAD)
            continue;
        start = at < start ? at : start;
        end = at + part->p_memsz > end ? at + part->p_memsz : end;
    }
    if (table == 0 || search->address < start || search->address >= end)
        return 0;
    *search->found = (struct dl_find_object){
        .map_start = (void *)start, .map_end = (void *)end, .eh_frame = (void *)table};
    return 1;
}

int _dl_find_object(void *address, struct dl_find_object *found) {
    struct search search = {(ElfW(Addr))address, found};
    return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}
