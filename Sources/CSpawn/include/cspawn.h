// Starting a program as another user, cut off from everything the caller has open.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// A user of the system, as the password database knows it.
struct tapline_user {
    uid_t uid;
    gid_t gid;
    char name[64];
};

// Finds a user by name or by number. Returns false when there is none (or the name is too long).
bool tapline_user_named(const char *name, struct tapline_user *user);
bool tapline_user_numbered(uid_t uid, struct tapline_user *user);

// Starts `path` in a session of its own, in directory "/", with no signal blocked or ignored and
// umask 077.
//
// environment: an empty one keeps the caller's.
// user: the user to become, with its groups; NULL keeps the caller's.
// niceness: how far it stands back, unless the caller does so further; 0 is as the caller.
// output: becomes standard output and error; -1 is /dev/null, as standard input is.
// third, fourth: descriptors that become 3 and 4; -1 leaves them closed. No other stays open.
//
// Returns the process id of the child, which the caller must wait for, or -1 with the errno value
// of what failed, execve included, in *error.
pid_t tapline_spawn(const char *path, char *const *arguments, char *const *environment,
                    const struct tapline_user *user, int niceness, int output, int third,
                    int fourth, int *error);

// Whether a user other than the caller may search the directory `path`, its parents included.
// Asks the kernel from a child that has become the user.
bool tapline_user_can_search(const char *path, const struct tapline_user *user);

// pipe2(ends, O_CLOEXEC). Returns false and sets errno on failure.
bool tapline_pipe(int ends[2]);

// Whether the C library has the locale `name`.
bool tapline_has_locale(const char *name);
