/* A planted fault: a Linux without locks of open file descriptions, as before 3.15.
 *
 * The lock that stands for a process at the database file does nothing, and those of the shared memory are refused, so that
 * they are taken for the process, as SQLite takes them by itself.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#define DATABASE_LOCKS 0x40000000

typedef int control(int, int, ...);

static int controlled(control *next, int file, int command, void *argument) {
    if (command == F_OFD_SETLK || command == F_OFD_GETLK) {
        if (((struct flock *)argument)->l_start >= DATABASE_LOCKS) return 0;
        errno = EINVAL;
        return -1;
    }
    return next(file, command, argument);
}

#define CONTROL(name)                                           \
    int name(int file, int command, ...) {                      \
        static control *next;                                   \
        if (!next) next = (control *)dlsym(RTLD_NEXT, #name);   \
        va_list rest;                                           \
        va_start(rest, command);                                \
        void *argument = va_arg(rest, void *);                  \
        va_end(rest);                                           \
        return controlled(next, file, command, argument);       \
    }

CONTROL(fcntl)
CONTROL(fcntl64)
