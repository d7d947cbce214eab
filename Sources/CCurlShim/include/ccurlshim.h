#pragma once
// Just enough of libcurl to post bodies over several connections from one thread:
// curl_easy_setopt and curl_easy_getinfo are variadic, which Swift cannot call.
#include <stddef.h>
#include <stdint.h>

typedef struct tapline_transfer tapline_transfer;
typedef struct tapline_transfers tapline_transfers;

typedef struct {
    const char *url;
    const char *authorization;  // the value of the header; NULL for none
    const char *user_agent;
    const uint8_t *body;  // copied; NULL for a GET
    size_t body_length;
    long connect_timeout_ms;
    long timeout_ms;
    int stream;  // nonzero: the answer is taken while it comes, and ends when nothing has for 15 s
    int direct;  // nonzero: no proxy, whatever the environment says
} tapline_request;

// The set of connections; NULL when libcurl is not there, or memory is short. At most `connections` are open.
tapline_transfers *tapline_transfers_create(long connections);

// Why the library could not be opened, if that is why `tapline_transfers_create` gave NULL; else empty.
const char *tapline_transfers_reason(void);

void tapline_transfers_free(tapline_transfers *set);

// Starts a POST of a gzipped NDJSON body, or a GET. NULL when memory is short or the URL is wrong.
tapline_transfer *tapline_transfer_start(tapline_transfers *set, const tapline_request *request);

// Moves bytes; waits at most timeout_ms for something to happen. 0, or a CURLMcode.
int tapline_transfers_run(tapline_transfers *set, int timeout_ms);

// A transfer that has ended, or NULL. It is the caller's to free.
tapline_transfer *tapline_transfers_next_done(tapline_transfers *set);

// The HTTP status; 0 when there was no whole answer, and then `error` says why.
long tapline_transfer_status(const tapline_transfer *transfer);
const char *tapline_transfer_error(const tapline_transfer *transfer);
// Seconds of the Retry-After header; 0 for none.
long tapline_transfer_retry_after(const tapline_transfer *transfer);
const uint8_t *tapline_transfer_answer(const tapline_transfer *transfer, size_t *length);
// Forgets what has come of the answer so far, which the caller has taken.
void tapline_transfer_forget(tapline_transfer *transfer);
// Ends the transfer first if it is still running.
void tapline_transfer_free(tapline_transfer *transfer);
