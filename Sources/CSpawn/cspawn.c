#define _GNU_SOURCE
#include "cspawn.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <locale.h>
#include <pwd.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GROUPS_MAX = 256, REPORT = 5 };

static bool fill(const struct passwd *entry, struct tapline_user *user) {
    if (entry == NULL || strlen(entry->pw_name) >= sizeof user->name) return false;
    user->uid = entry->pw_uid;
    user->gid = entry->pw_gid;
    strcpy(user->name, entry->pw_name);
    return true;
}

bool tapline_user_named(const char *name, struct tapline_user *user) {
    struct passwd space, *entry = NULL;
    char text[4096];
    getpwnam_r(name, &space, text, sizeof text, &entry);
    return fill(entry, user);
}

bool tapline_user_numbered(uid_t uid, struct tapline_user *user) {
    struct passwd space, *entry = NULL;
    char text[4096];
    getpwuid_r(uid, &space, text, sizeof text, &entry);
    return fill(entry, user);
}

// From here to the end of `child`: between fork and exec of a process with threads, so only what is
// async-signal-safe. The set*id calls go to the kernel directly, since those of the C library try to
// tell the other threads, which the child has not.

static int become(const struct tapline_user *user, const gid_t *groups, int count) {
    if (syscall(SYS_setgroups, (long)count, groups) != 0) return errno;
    if (syscall(SYS_setgid, (long)user->gid) != 0) return errno;
    if (syscall(SYS_setuid, (long)user->uid) != 0) return errno;
    return 0;
}

static void close_from(int first) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, ~0u, 0u) == 0) return;
#endif
    long limit = sysconf(_SC_OPEN_MAX);
    for (long descriptor = first; descriptor < limit; descriptor++) close((int)descriptor);
}

static void default_signals(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; number++) sigaction(number, &action, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

// Puts a descriptor out of the way of 0...5.
static int aside(int descriptor) {
    return descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 16);
}

static void child(const char *path, char *const *arguments, char *const *environment,
                  const struct tapline_user *user, const gid_t *groups, int group_count,
                  int niceness, int output, int third, int fourth, int report) {
    default_signals();
    setsid();
    umask(077);
    if (niceness > 0 && getpriority(PRIO_PROCESS, 0) < niceness) setpriority(PRIO_PROCESS, 0, niceness);
    report = aside(report);
    output = aside(output);
    third = aside(third);
    fourth = aside(fourth);
    int nothing = aside(open("/dev/null", O_RDWR | O_CLOEXEC));
    int code = nothing < 0 ? errno : 0;
    dup2(nothing, 0);
    dup2(output < 0 ? nothing : output, 1);
    dup2(output < 0 ? nothing : output, 2);
    if (third < 0) close(3); else dup2(third, 3);
    if (fourth < 0) close(4); else dup2(fourth, 4);
    dup3(report, REPORT, O_CLOEXEC);
    close_from(REPORT + 1);
    if (code == 0 && user != NULL) code = become(user, groups, group_count);
    if (code == 0 && chdir("/") != 0) code = errno;
    if (code == 0) {
        execve(path, arguments, environment);
        code = errno;
    }
    (void)!write(REPORT, &code, sizeof code);
    _exit(127);
}

pid_t tapline_spawn(const char *path, char *const *arguments, char *const *environment,
                    const struct tapline_user *user, int niceness, int output, int third,
                    int fourth, int *error) {
    gid_t groups[GROUPS_MAX];
    int group_count = GROUPS_MAX;
    if (user != NULL && getgrouplist(user->name, user->gid, groups, &group_count) < 0) {
        group_count = GROUPS_MAX;
    }
    if (environment[0] == NULL) environment = environ;
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) {
        *error = errno;
        return -1;
    }
    // No handler of the caller may run in the child before it has dropped them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        child(path, arguments, environment, user, groups, group_count, niceness, output, third,
              fourth, report[1]);
    }
    int code = pid < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    if (pid > 0) {
        int reported = 0;
        ssize_t got;
        do got = read(report[0], &reported, sizeof reported);
        while (got < 0 && errno == EINTR);
        if (got == sizeof reported) {
            code = reported;
            while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
        }
    }
    close(report[0]);
    *error = code;
    return code == 0 ? pid : -1;
}

bool tapline_user_can_search(const char *path, const struct tapline_user *user) {
    gid_t groups[GROUPS_MAX];
    int group_count = GROUPS_MAX;
    if (getgrouplist(user->name, user->gid, groups, &group_count) < 0) group_count = GROUPS_MAX;
    pid_t pid = fork();
    if (pid == 0) {
        bool fine = become(user, groups, group_count) == 0 && access(path, X_OK) == 0;
        _exit(fine ? 0 : 1);
    }
    if (pid < 0) return false;
    int status = 1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool tapline_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC) == 0; }

bool tapline_has_locale(const char *name) {
    locale_t locale = newlocale(LC_ALL_MASK, name, (locale_t)0);
    if (locale == (locale_t)0) return false;
    freelocale(locale);
    return true;
}
