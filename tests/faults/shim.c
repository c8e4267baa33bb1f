// Stands between a process and the file system, by LD_PRELOAD, for the files below one folder.
//
// It writes down every call that changes a file, so that the folder can be rebuilt as a loss of power would have left
// it (disk.py), or makes one call fail. Idle until shim_watch() is called; all of it is driven through ctypes.
//
// What it cannot see: calls that do not go through libc (some crates make system calls themselves), so
// each sync of a folder also writes down what the folder lists; and writes to mapped memory, which only SQLite's -shm
// file sees, and nobody needs that after a loss of power.

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { OPEN = 'o', WRITE = 'w', TRUNCATE = 't', SYNC = 's', RENAME = 'r', UNLINK = 'u', MKDIR = 'm', LINK = 'l', MARK = 'k' };
enum manner { NONE, EIO_ONCE, FULL_FROM, HALF_WRITE, KILL, SYNC_EIO, SYNC_FULL };
enum verdict { PASS, FAIL, HALF, DIE };

static char root[PATH_MAX];
static int log_fd = -1;
static long calls;
static long position;
static enum manner manner;
static int struck;
static int swallowing;
static char kinds[1 << 16];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

// --- for ctypes ---

void shim_watch(const char *folder) { snprintf(root, sizeof root, "%s", folder); }
void shim_record(const char *path) { log_fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600); }
void shim_swallow(int on) { swallowing = on; }
void shim_fail(long at, int how) { calls = 0, struck = 0, position = at, manner = how; memset(kinds, 0, sizeof kinds); }
int shim_struck(void) { return struck; }
const char *shim_kinds(void) { return kinds; }

// --- writing down ---

struct __attribute__((packed)) header {
    uint8_t kind;
    int64_t ino, number;
    uint32_t path_bytes, data_bytes;
};

static void put(enum kind kind, int64_t ino, int64_t number, const char *path, const void *data, size_t bytes) {
    if (log_fd < 0) return;
    struct header header = {kind, ino, number, strlen(path), bytes};
    struct iovec parts[] = {{&header, sizeof header}, {(void *)path, strlen(path)}, {(void *)data, bytes}};
    if (syscall(SYS_writev, log_fd, parts, 3) != (long)(sizeof header + strlen(path) + bytes)) abort();
}

void shim_mark(const char *text) {
    pthread_mutex_lock(&turn);
    put(MARK, 0, 0, text, "", 0);
    pthread_mutex_unlock(&turn);
}

// --- whose call it is, and what becomes of it ---

static int is_ours(const char *path) {
    size_t length = strlen(root);
    return length && !strncmp(path, root, length) && (path[length] == '/' || !path[length]);
}

// The path of a descriptor, when it is below the watched folder.
static int of_fd(int fd, char *path) {
    if (!*root) return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_ours(path);
}

static int at(int folder, const char *name, char *path) {
    if (!*root) return 0;
    if (*name == '/') {
        snprintf(path, PATH_MAX, "%s", name);
        return is_ours(path);
    }
    char above[PATH_MAX];
    if (folder == AT_FDCWD || !of_fd(folder, above)) return 0;
    return snprintf(path, PATH_MAX, "%s/%s", above, name) < PATH_MAX;
}

static int is_shm(const char *path) {
    size_t length = strlen(path);
    return length > 4 && !strcmp(path + length - 4, "-shm");
}

static int64_t ino_of(int fd) {
    struct stat status;
    return fstat(fd, &status) ? 0 : (int64_t)status.st_ino;
}

static enum verdict judge(enum kind kind) {
    if (calls < (long)sizeof kinds - 1) kinds[calls] = kind;
    calls++;
    int once = calls >= position && !struck;
    int takes_room = kind == OPEN || kind == WRITE || kind == TRUNCATE || kind == MKDIR || kind == RENAME || kind == LINK;
    enum verdict verdict = PASS;
    switch (manner) {
    case NONE: break;
    case EIO_ONCE: if (once) verdict = FAIL, errno = EIO; break;
    case FULL_FROM: if (calls >= position && takes_room) verdict = FAIL, errno = ENOSPC; break;
    case HALF_WRITE: if (once && kind == WRITE) verdict = HALF; break;
    case KILL: if (once) verdict = DIE; break;
    case SYNC_EIO: if (once && kind == SYNC) verdict = FAIL, errno = EIO; break;
    case SYNC_FULL: if (once && kind == SYNC) verdict = FAIL, errno = ENOSPC; break;
    }
    if (verdict != PASS) struck = 1;
    if (verdict == DIE && kind != WRITE) raise(SIGKILL);
    return verdict;
}

// The call, if it may go ahead, with a line in the log when it did what it was for.
#define CALL(kind, ours, real, line)                            \
    do {                                                        \
        if (!(ours)) return (real);                             \
        pthread_mutex_lock(&turn);                              \
        long done = judge(kind) == FAIL ? -1 : (long)(real);    \
        if (done >= 0) { int kept = errno; line; errno = kept; } \
        pthread_mutex_unlock(&turn);                            \
        return done;                                            \
    } while (0)

// --- the calls ---

enum { CREATED = 1, CUT = 2 };

static int opened(int folder, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    int writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT;
    struct stat status;
    int ours = at(folder, name, path) && writes;
    int is_new = ours && flags & O_CREAT && syscall(SYS_newfstatat, AT_FDCWD, path, &status, 0);
    int what = (is_new ? CREATED : 0) | (flags & O_TRUNC ? CUT : 0);
    CALL(OPEN, ours, syscall(SYS_openat, folder, name, flags, mode), if (!is_shm(path)) put(OPEN, ino_of(done), what, path, "", 0));
}

#define MODE(flags) ({ mode_t mode = 0; if ((flags) & (O_CREAT | O_TMPFILE)) { va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); } mode; })
int open(const char *path, int flags, ...) { return opened(AT_FDCWD, path, flags, MODE(flags)); }
int open64(const char *path, int flags, ...) { return opened(AT_FDCWD, path, flags, MODE(flags)); }
int openat(int folder, const char *path, int flags, ...) { return opened(folder, path, flags, MODE(flags)); }
int openat64(int folder, const char *path, int flags, ...) { return opened(folder, path, flags, MODE(flags)); }
int creat(const char *path, mode_t mode) { return opened(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

// A write at `offset`, or where the descriptor stands when that is negative.
static ssize_t wrote(int fd, const void *data, size_t bytes, off_t offset) {
    char path[PATH_MAX];
    if (!of_fd(fd, path)) return offset < 0 ? syscall(SYS_write, fd, data, bytes) : syscall(SYS_pwrite64, fd, data, bytes, offset);
    pthread_mutex_lock(&turn);
    enum verdict verdict = judge(WRITE);
    ssize_t done = -1;
    if (verdict != FAIL) {
        size_t part = verdict == PASS ? bytes : (bytes + 1) / 2;
        done = offset < 0 ? syscall(SYS_write, fd, data, part) : syscall(SYS_pwrite64, fd, data, part, offset);
        if (done > 0 && !is_shm(path)) put(WRITE, ino_of(fd), offset < 0 ? lseek(fd, 0, SEEK_CUR) - done : offset, path, data, done);
        if (verdict == DIE) raise(SIGKILL);
    }
    pthread_mutex_unlock(&turn);
    return done;
}

ssize_t write(int fd, const void *data, size_t bytes) { return wrote(fd, data, bytes, -1); }
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) { return wrote(fd, data, bytes, offset); }
ssize_t pwrite64(int fd, const void *data, size_t bytes, off_t offset) { return wrote(fd, data, bytes, offset); }

// Only its first part, when it is ours: a short write, which every caller must be able to continue.
ssize_t writev(int fd, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    if (!of_fd(fd, path)) return syscall(SYS_writev, fd, parts, count);
    while (count > 1 && !parts->iov_len) parts++, count--;
    return count ? wrote(fd, parts->iov_base, parts->iov_len, -1) : 0;
}

int ftruncate(int fd, off_t size) {
    char path[PATH_MAX];
    CALL(TRUNCATE, of_fd(fd, path), syscall(SYS_ftruncate, fd, size), if (!is_shm(path)) put(TRUNCATE, ino_of(fd), size, path, "", 0));
}
int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

enum { LISTING = 1, FAILED = 2 };

// The sync of a folder, with what it lists: "number name" and a NUL for each.
static void put_listing(int64_t ino, const char *path) {
    DIR *folder = opendir(path);
    if (!folder) return;
    static char listing[1 << 20];
    size_t bytes = 0;
    for (struct dirent *entry; (entry = readdir(folder)) && bytes < sizeof listing - 512;)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && !is_shm(entry->d_name))
            bytes += snprintf(listing + bytes, 512, "%ld %s", (long)entry->d_ino, entry->d_name) + 1;
    closedir(folder);
    put(SYNC, ino, LISTING, path, listing, bytes);
}

static int synced(int fd, long number) {
    char path[PATH_MAX];
    struct stat status;
    if (!of_fd(fd, path)) return syscall(number, fd);
    pthread_mutex_lock(&turn);
    int done = judge(SYNC) == FAIL ? -1 : swallowing ? 0 : syscall(number, fd);
    int kept = errno;
    if (!swallowing && !is_shm(path) && !fstat(fd, &status)) {
        if (!S_ISDIR(status.st_mode)) put(SYNC, status.st_ino, done ? FAILED : 0, path, "", 0);
        else if (!done) put_listing(status.st_ino, path);
    }
    errno = kept;
    pthread_mutex_unlock(&turn);
    return done;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }
// Promises nothing after a loss of power, so it is not written down; but it may fail.
int sync_file_range(int fd, off64_t from, off64_t bytes, unsigned flags) {
    char path[PATH_MAX];
    CALL(SYNC, of_fd(fd, path), syscall(SYS_sync_file_range, fd, from, bytes, flags), );
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    char old_path[PATH_MAX], new_path[PATH_MAX];
    int ours = at(from, old, old_path) & at(to, new, new_path);
    CALL(RENAME, ours, syscall(SYS_renameat2, from, old, to, new, flags), put(RENAME, 0, 0, old_path, new_path, strlen(new_path)));
}
int renameat(int from, const char *old, int to, const char *new) { return renameat2(from, old, to, new, 0); }
int rename(const char *old, const char *new) { return renameat2(AT_FDCWD, old, AT_FDCWD, new, 0); }

int unlinkat(int folder, const char *name, int flags) {
    char path[PATH_MAX];
    CALL(UNLINK, at(folder, name, path), syscall(SYS_unlinkat, folder, name, flags), put(UNLINK, 0, 0, path, "", 0));
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int folder, const char *name, mode_t mode) {
    char path[PATH_MAX];
    CALL(MKDIR, at(folder, name, path), syscall(SYS_mkdirat, folder, name, mode), put(MKDIR, 0, 0, path, "", 0));
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int linkat(int from, const char *old, int to, const char *new, int flags) {
    char old_path[PATH_MAX], new_path[PATH_MAX];
    int ours = at(from, old, old_path) & at(to, new, new_path);
    CALL(LINK, ours, syscall(SYS_linkat, from, old, to, new, flags), put(LINK, 0, 0, old_path, new_path, strlen(new_path)));
}
int link(const char *old, const char *new) { return linkat(AT_FDCWD, old, AT_FDCWD, new, 0); }
