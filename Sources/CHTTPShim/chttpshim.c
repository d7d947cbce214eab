#define _GNU_SOURCE
#include "chttpshim.h"

#include <string.h>
#include <sys/socket.h>

// Leaves a target as it was sent: paths are compared whole and undecoded.
static size_t leave_escaped(void *context, struct MHD_Connection *connection, char *text) {
    (void)context;
    (void)connection;
    return strlen(text);
}

struct MHD_Daemon *tapline_http_start(const struct tapline_http_options *options) {
    struct MHD_OptionItem items[] = {
        {MHD_OPTION_CONNECTION_LIMIT, options->connections, NULL},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)options->memory, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, 0, NULL},
        {MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)options->connection_changed, options->context},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)options->request_completed, options->context},
        {MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)options->request_line_read, options->context},
        {MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)leave_escaped, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ITC |
            MHD_ALLOW_SUSPEND_RESUME,
        0, NULL, NULL, options->request_proceeds, options->context, MHD_OPTION_ARRAY, items,
        MHD_OPTION_END);
}

int tapline_http_accept(int listener, struct sockaddr *address, socklen_t *count) {
    return accept4(listener, address, count, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

int tapline_http_socket(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

void *tapline_http_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

const struct sockaddr *tapline_http_address(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info ? info->client_addr : NULL;
}

size_t tapline_http_header_bytes(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info ? info->header_size : 0;
}
