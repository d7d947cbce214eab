// What Swift cannot call: the variadic functions of libmicrohttpd, and accept4.
#pragma once
#include <microhttpd.h>
#include <stddef.h>

/// How to start; every member has to be set.
struct tapline_http_options {
    unsigned int connections;   // at one time
    size_t memory;              // bytes of buffer of one connection
    void *context;              // handed to every callback
    MHD_NotifyConnectionCallback connection_changed;
    void *(*request_line_read)(void *, const char *, struct MHD_Connection *);
    MHD_AccessHandlerCallback request_proceeds;
    MHD_RequestCompletedCallback request_completed;
};

/// MHD_start_daemon with an epoll thread, to which MHD_add_connection gives connections. NULL with errno
/// set when it could not start.
struct MHD_Daemon *tapline_http_start(const struct tapline_http_options *options);

/// Waits for a connection. Its socket, which does not block, or -1 with errno set. `count` is the room for the
/// address in bytes, and becomes what it takes.
int tapline_http_accept(int listener, struct sockaddr *address, socklen_t *count);

/// The socket of a connection, or -1.
int tapline_http_socket(struct MHD_Connection *connection);

/// The context that the connection notification has stored, or NULL.
void *tapline_http_context(struct MHD_Connection *connection);

/// The address of the client, or NULL; valid as long as the connection.
const struct sockaddr *tapline_http_address(struct MHD_Connection *connection);

/// The bytes of the request line and the headers.
size_t tapline_http_header_bytes(struct MHD_Connection *connection);
