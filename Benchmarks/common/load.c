// The load generator: posts bodies that were made before, over N connections, on one thread.
//
//   load --ports P[,P...] --key KEY [--connections N] [--rate BODIES/S] [--seconds S] [--repeat]
//        [--plain] FILE
//
// FILE holds bodies one after the other: u32 length and u32 events, both little endian, then the
// bytes of the body. Each is posted once, in order; connections take the ports in turn. With
// --rate, body n is due n/RATE seconds after the start and its time runs from when it was due, so
// that a slow answer also counts against the bodies it delayed. --seconds: no body is begun later;
// --repeat: until then, the file over and over.
//
// Prints one JSON object: bodies, events, accepted, failed (with the first failure's text), seconds,
// the CPU seconds of this process, and percentiles of the time to the answer in microseconds. It
// shares the cores with what it measures: bodies are mapped, and an answer is only searched.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { answer_max = 16384, head_max = 1024, connections_max = 1000, ports_max = 16 };

struct connection {
    int socket, port;
    bool busy;
    double began;              // seconds; when the body was sent, or was due
    uint32_t events;
    struct iovec parts[2];     // what is left to send: head, body
    char head[head_max];
    char answer[answer_max + 1];
    size_t answered;
};

static struct connection connections[connections_max];
static const uint8_t *bodies;
static size_t bodies_bytes, next_body;
static char head_format[head_max];
static double started, rate, seconds_max;
static bool repeated;
static uint64_t begun, answered_bodies, sent_events, accepted_events, failed;
static uint32_t *times;
static size_t times_room;
static char first_failure[400];
static int queue, timer;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

// Connects, again if the server has closed the connection.
static void dial(struct connection *c) {
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)c->port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    int on = 1;
    if (c->socket > 0) close(c->socket);
    c->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->socket, (struct sockaddr *)&address, sizeof address) != 0)
        fail("could not connect");
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(c->socket, F_SETFL, O_NONBLOCK);
    if (epoll_ctl(queue, EPOLL_CTL_ADD, c->socket, &event) != 0) fail("epoll");
}

// Sends what the socket takes; the rest follows when it is writable again.
static void push(struct connection *c) {
    while (c->parts[1].iov_len > 0) {
        ssize_t sent = writev(c->socket, c->parts, 2);
        if (sent < 0) {
            if (errno == EAGAIN) return;
            fail("could not send");
        }
        for (int i = 0; i < 2; i++) {
            size_t taken = (size_t)sent < c->parts[i].iov_len ? (size_t)sent : c->parts[i].iov_len;
            c->parts[i].iov_base = (char *)c->parts[i].iov_base + taken;
            c->parts[i].iov_len -= taken;
            sent -= (ssize_t)taken;
        }
    }
}

// Gives the connection the next body; false when there is none, or it is not due yet.
static bool begin(struct connection *c) {
    if (next_body >= bodies_bytes && repeated) next_body = 0;
    if (next_body >= bodies_bytes) return false;
    double due = now();
    if (seconds_max > 0 && due - started > seconds_max) return false;
    if (rate > 0) {
        double planned = started + (double)begun / rate;
        if (planned > due) {
            double wait = planned - due;
            struct itimerspec when = {
                .it_value = {(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9) + 1}};
            if (timerfd_settime(timer, 0, &when, NULL) != 0) fail("could not set the timer");
            return false;
        }
        due = planned;
    }
    uint32_t length;
    memcpy(&length, bodies + next_body, 4);
    memcpy(&c->events, bodies + next_body + 4, 4);
    int head = snprintf(c->head, head_max, head_format, length);
    c->parts[0] = (struct iovec){c->head, (size_t)head};
    c->parts[1] = (struct iovec){(void *)(bodies + next_body + 8), length};
    next_body += 8 + length;
    begun++;
    c->busy = true;
    c->began = due;
    c->answered = 0;
    push(c);
    return true;
}

// Reads what there is; true when the answer is whole.
static bool pull(struct connection *c) {
    for (;;) {
        ssize_t got = recv(c->socket, c->answer + c->answered, answer_max - c->answered, 0);
        if (got < 0) {
            if (errno == EAGAIN) return false;
            fail("could not receive");
        }
        if (got == 0) {
            fprintf(stderr, "the server closed a connection, or an answer is too long\n");
            exit(1);
        }
        c->answered += (size_t)got;
        c->answer[c->answered] = 0;
        char *end = strstr(c->answer, "\r\n\r\n");
        if (!end) continue;
        char *length = strcasestr(c->answer, "\r\ncontent-length:");
        if (!length || length > end) {
            fprintf(stderr, "an answer has no Content-Length:\n%s\n", c->answer);
            exit(1);
        }
        size_t whole = (size_t)(end + 4 - c->answer) + strtoul(length + 17, NULL, 10);
        if (c->answered >= whole) return true;
    }
}

static void finish(struct connection *c) {
    if (answered_bodies == times_room) {
        times_room = times_room ? times_room * 2 : 65536;
        times = realloc(times, times_room * sizeof *times);
        if (!times) fail("no memory");
    }
    times[answered_bodies++] = (uint32_t)((now() - c->began) * 1e6);
    sent_events += c->events;
    char *accepted = strstr(c->answer, "\"accepted\":");
    uint32_t count = accepted ? (uint32_t)strtoul(accepted + 11, NULL, 10) : 0;
    accepted_events += count;
    if (strncmp(c->answer + 8, " 200", 4) != 0 || count != c->events) {
        if (failed++ == 0) {
            size_t room = 0;
            for (char *at = c->answer; *at && room < sizeof first_failure - 1; at++)
                if (*at >= ' ' && *at != '"' && *at != '\\') first_failure[room++] = *at;
        }
    }
    c->busy = false;
}

static int ascending(const void *left, const void *right) {
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

static uint32_t percentile(double share) {
    if (answered_bodies == 0) return 0;
    size_t at = (size_t)((double)answered_bodies * share);
    return times[at < answered_bodies ? at : answered_bodies - 1];
}

int main(int count, char **arguments) {
    int ports[ports_max], port_count = 0, wanted = 8;
    const char *key = "";
    bool plain = false;
    const struct option options[] = {
        {"ports", required_argument, 0, 'p'}, {"key", required_argument, 0, 'k'},
        {"connections", required_argument, 0, 'c'}, {"rate", required_argument, 0, 'r'},
        {"seconds", required_argument, 0, 's'}, {"plain", no_argument, 0, 'n'},
        {"repeat", no_argument, 0, 'a'}, {0, 0, 0, 0}};
    for (int option; (option = getopt_long(count, arguments, "", options, NULL)) != -1;) {
        switch (option) {
        case 'p':
            for (char *at = optarg; at && *at && port_count < ports_max; at = strchr(at, ',')) {
                if (*at == ',') at++;
                ports[port_count++] = atoi(at);
            }
            break;
        case 'k': key = optarg; break;
        case 'c': wanted = atoi(optarg); break;
        case 'r': rate = atof(optarg); break;
        case 's': seconds_max = atof(optarg); break;
        case 'a': repeated = true; break;
        case 'n': plain = true; break;
        default: return 2;
        }
    }
    // A file that is repeated has to end some time.
    bool endless = repeated && seconds_max <= 0;
    if (port_count == 0 || optind + 1 != count || endless) return 2;
    if (wanted < 1 || wanted > connections_max) return 2;
    snprintf(head_format, sizeof head_format,
        "POST /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n"
        "Content-Type: application/x-ndjson\r\n%sContent-Length: %%u\r\n\r\n",
        key, plain ? "" : "Content-Encoding: gzip\r\n");

    int file = open(arguments[optind], O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) fail(arguments[optind]);
    bodies_bytes = (size_t)status.st_size;
    // Populated now, so that no page of it is read while the clock runs.
    bodies = mmap(NULL, bodies_bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (bodies == MAP_FAILED) fail(arguments[optind]);

    signal(SIGPIPE, SIG_IGN);
    queue = epoll_create1(0);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (queue < 0 || timer < 0 || epoll_ctl(queue, EPOLL_CTL_ADD, timer, &event) != 0) fail("epoll");
    for (int i = 0; i < wanted; i++) {
        connections[i].port = ports[i % port_count];
        dial(&connections[i]);
    }

    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    started = now();
    int busy = 0, turn = 0;
    for (int i = 0; i < wanted; i++) busy += begin(&connections[i]);
    while (busy > 0 || ((next_body < bodies_bytes || repeated) && rate > 0
                        && (seconds_max <= 0 || now() - started <= seconds_max))) {
        struct epoll_event ready[64];
        int found = epoll_wait(queue, ready, 64, 1000);
        if (found < 0 && errno != EINTR) fail("epoll_wait");
        bool idle = false;
        for (int i = 0; i < found; i++) {
            struct connection *c = ready[i].data.ptr;
            if (!c) {
                uint64_t ticks;
                if (read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN) fail("timer");
                idle = true;
                continue;
            }
            if (!c->busy) {
                // A server may close a connection that waits for its turn too long.
                char byte;
                if (recv(c->socket, &byte, 1, MSG_PEEK) == 0) dial(c);
                continue;
            }
            if (ready[i].events & EPOLLOUT) push(c);
            if (pull(c)) {
                finish(c);
                busy--;
                busy += begin(c);
            }
        }
        // In turn, so that none is idle for long.
        for (int i = 0; idle && i < wanted; i++) {
            struct connection *c = &connections[(turn + i) % wanted];
            if (c->busy) continue;
            if (!begin(c)) break;
            turn = (int)(c - connections) + 1;
            busy++;
        }
    }
    double seconds = now() - started;
    getrusage(RUSAGE_SELF, &after);
    double cpu = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec)
        + (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec)
        + (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) * 1e-6
        + (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec) * 1e-6;
    qsort(times, answered_bodies, sizeof *times, ascending);
    printf("{\"bodies\":%lu,\"events\":%lu,\"accepted\":%lu,\"failed\":%lu,\"seconds\":%.6f,"
        "\"cpu\":%.6f,\"p50\":%u,\"p90\":%u,\"p99\":%u,\"most\":%u,\"failure\":\"%s\"}\n",
        answered_bodies, sent_events, accepted_events, failed, seconds, cpu, percentile(0.5),
        percentile(0.9), percentile(0.99), percentile(1), first_failure);
    return 0;
}
