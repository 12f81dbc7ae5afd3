/* Makes the n-th call of one kind fail below one folder; loaded before libc (LD_PRELOAD), armed through ctypes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *calls_[] = {"write", "open", "rename", "fsync", "mkdir", "flock", "unlink", 0};
static char home_[PATH_MAX];
static int call_ = -1, error_, from_, once_;
static volatile int armed_, seen_[8];

/* The calls of kind `call`, -1 for none, below `home` fail from the given one on, or that one alone; all are counted. */
void fault_arm(int call, int error, int from, int once, const char *home) {
    armed_ = 0;
    strncpy(home_, home, sizeof home_ - 1);
    call_ = call, error_ = error, from_ = from, once_ = once;
    memset((void *)seen_, 0, sizeof seen_);
    armed_ = home[0] != 0;
}

int fault_count(int call) { return seen_[call]; }

static int fails(const char *call, const char *path) {
    if (!armed_ || strncmp(path, home_, strlen(home_))) return 0;
    int kind = 0;
    while (strcmp(calls_[kind], call)) kind++;
    int number = __sync_add_and_fetch(&seen_[kind], 1);
    if (kind != call_ || number < from_ || (once_ && number > from_)) return 0;
    errno = error_;
    return 1;
}

static int fails_at(const char *call, int descriptor) {
    char link[64], path[PATH_MAX];
    if (!armed_) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return fails(call, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *b, size_t n) { return fails_at("write", fd) ? -1 : REAL(write)(fd, b, n); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { return fails_at("write", fd) ? -1 : REAL(pwrite)(fd, b, n, o); }
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o) { return fails_at("write", fd) ? -1 : REAL(pwrite64)(fd, b, n, o); }
ssize_t writev(int fd, const struct iovec *v, int n) { return fails_at("write", fd) ? -1 : REAL(writev)(fd, v, n); }
int fsync(int fd) { return fails_at("fsync", fd) ? -1 : REAL(fsync)(fd); }
int flock(int fd, int how) { return fails_at("flock", fd) ? -1 : REAL(flock)(fd, how); }
int rename(const char *a, const char *b) { return fails("rename", b) ? -1 : REAL(rename)(a, b); }
int renameat(int d, const char *a, int e, const char *b) { return fails("rename", b) ? -1 : REAL(renameat)(d, a, e, b); }
int mkdir(const char *p, mode_t m) { return fails("mkdir", p) ? -1 : REAL(mkdir)(p, m); }
int mkdirat(int d, const char *p, mode_t m) { return fails("mkdir", p) ? -1 : REAL(mkdirat)(d, p, m); }
int unlink(const char *p) { return fails("unlink", p) ? -1 : REAL(unlink)(p); }

static int made(int how) { return (how & O_CREAT) || (how & O_ACCMODE) != O_RDONLY; }
#define OPENS(name)                                                                       \
    int name(const char *p, int how, ...) {                                               \
        va_list rest;                                                                     \
        va_start(rest, how);                                                              \
        mode_t mode = (how & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0;           \
        va_end(rest);                                                                     \
        return made(how) && fails("open", p) ? -1 : REAL(name)(p, how, mode);             \
    }
OPENS(open)
OPENS(open64)
