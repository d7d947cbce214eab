#include "ccurlshim.h"

// The macros of that name check types of arguments, and call the functions by name.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

// libcurl and the libraries that only it needs are a sixth of what starting a process costs, and most
// commands make no request: so it is loaded by the first one.
#define EACH(use) \
    use(easy_cleanup) \
    use(easy_getinfo) \
    use(easy_init) \
    use(easy_setopt) \
    use(easy_strerror) \
    use(global_init) \
    use(multi_add_handle) \
    use(multi_cleanup) \
    use(multi_info_read) \
    use(multi_init) \
    use(multi_perform) \
    use(multi_poll) \
    use(multi_remove_handle) \
    use(multi_setopt) \
    use(slist_append) \
    use(slist_free_all)

static struct {
#define DECLARE(name) __typeof__(&curl_##name) name;
    EACH(DECLARE)
#undef DECLARE
    int is_ready;
    const char *reason;
} curl;

static void load(void) {
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *said = dlerror();
        curl.reason = said ? strdup(said) : NULL;
        return;
    }
#define FIND(name) if (!(curl.name = (__typeof__(curl.name))dlsym(library, "curl_" #name))) return;
    EACH(FIND)
#undef FIND
    curl.is_ready = curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

const char *tapline_transfers_reason(void) { return curl.reason ? curl.reason : ""; }

static int is_usable(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    return pthread_once(&once, load) == 0 && curl.is_ready;
}

enum { answer_bytes_max = 1 << 20 };

struct tapline_transfers {
    CURLM *multi;
    int active;  // started and not yet freed
};

struct tapline_transfer {
    CURL *easy;
    tapline_transfers *set;
    struct curl_slist *headers;
    CURLcode result;
    int stream;
    char *answer;
    size_t answer_length;
    char error[CURL_ERROR_SIZE];
};

tapline_transfers *tapline_transfers_create(long connections) {
    if (!is_usable()) return NULL;
    tapline_transfers *set = calloc(1, sizeof *set);
    if (!set) return NULL;
    set->multi = curl.multi_init();
    if (!set->multi) {
        free(set);
        return NULL;
    }
    curl.multi_setopt(set->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections);
    curl.multi_setopt(set->multi, CURLMOPT_MAXCONNECTS, connections);
    return set;
}

void tapline_transfers_free(tapline_transfers *set) {
    if (!set) return;
    curl.multi_cleanup(set->multi);
    free(set);
}

static size_t take_answer(char *bytes, size_t size, size_t count, void *context) {
    tapline_transfer *transfer = context;
    size_t length = size * count;
    // What is longer than this is not an answer of ours; its beginning is enough to say so.
    size_t room = answer_bytes_max - transfer->answer_length;
    size_t kept = transfer->stream || length < room ? length : room;
    if (kept > 0) {
        char *grown = realloc(transfer->answer, transfer->answer_length + kept);
        if (!grown) return 0;
        memcpy(grown + transfer->answer_length, bytes, kept);
        transfer->answer = grown;
        transfer->answer_length += kept;
    }
    return length;
}

static int add_header(tapline_transfer *transfer, const char *line) {
    struct curl_slist *grown = curl.slist_append(transfer->headers, line);
    if (!grown) return 0;
    transfer->headers = grown;
    return 1;
}

static int add_authorization(tapline_transfer *transfer, const char *value) {
    static const char name[] = "Authorization: ";
    if (!value) return 1;
    char *line = malloc(sizeof name + strlen(value));
    if (!line) return 0;
    strcpy(line, name);
    strcat(line, value);
    int added = add_header(transfer, line);
    free(line);
    return added;
}

tapline_transfer *tapline_transfer_start(tapline_transfers *set, const tapline_request *request) {
    tapline_transfer *transfer = calloc(1, sizeof *transfer);
    if (!transfer) return NULL;
    CURL *easy = transfer->easy = curl.easy_init();
    if (!easy
        || (request->body
            && (!add_header(transfer, "Content-Type: application/x-ndjson")
                || !add_header(transfer, "Content-Encoding: gzip")
                // No waiting for "100 Continue": a refusal comes early enough.
                || !add_header(transfer, "Expect:")))
        || !add_authorization(transfer, request->authorization)
        || curl.easy_setopt(easy, CURLOPT_URL, request->url) != CURLE_OK) {
        tapline_transfer_free(transfer);
        return NULL;
    }
    curl.easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(easy, CURLOPT_HTTPHEADER, transfer->headers);
    curl.easy_setopt(easy, CURLOPT_USERAGENT, request->user_agent);
    curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, request->connect_timeout_ms);
    curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, request->timeout_ms);
    curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error);
    curl.easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
    curl.easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    transfer->stream = request->stream;
    if (request->stream) {
        curl.easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl.easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, 15L);
    }
    if (request->direct) curl.easy_setopt(easy, CURLOPT_PROXY, "");
    if (request->body) {
        curl.easy_setopt(easy, CURLOPT_POST, 1L);
        curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
    }
    if ((request->body
            && curl.easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, request->body) != CURLE_OK)
        || curl.multi_add_handle(set->multi, easy) != CURLM_OK) {
        tapline_transfer_free(transfer);
        return NULL;
    }
    transfer->set = set;
    set->active++;
    return transfer;
}

int tapline_transfers_run(tapline_transfers *set, int timeout_ms) {
    int running = 0;
    CURLMcode code = curl.multi_perform(set->multi, &running);
    // Something has ended already: nothing to wait for.
    if (code != CURLM_OK || running < set->active) return code;
    code = curl.multi_poll(set->multi, NULL, 0, timeout_ms, NULL);
    if (code != CURLM_OK) return code;
    return curl.multi_perform(set->multi, &running);
}

tapline_transfer *tapline_transfers_next_done(tapline_transfers *set) {
    int left = 0;
    CURLMsg *message;
    while ((message = curl.multi_info_read(set->multi, &left))) {
        if (message->msg != CURLMSG_DONE) continue;
        char *context = NULL;
        CURLcode result = message->data.result;
        curl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &context);
        tapline_transfer *transfer = (tapline_transfer *)context;
        transfer->result = result;
        return transfer;
    }
    return NULL;
}

long tapline_transfer_status(const tapline_transfer *transfer) {
    long status = 0;
    curl.easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    if (transfer->result == CURLE_OK) return status;
    // A server may refuse a body and close before it has read all of it.
    if (transfer->result == CURLE_SEND_ERROR && status >= 400) return status;
    return 0;
}

const char *tapline_transfer_error(const tapline_transfer *transfer) {
    return transfer->error[0] ? transfer->error : curl.easy_strerror(transfer->result);
}

long tapline_transfer_retry_after(const tapline_transfer *transfer) {
    curl_off_t seconds = 0;
    curl.easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &seconds);
    return seconds > 1000000 ? 1000000 : (long)seconds;
}

const uint8_t *tapline_transfer_answer(const tapline_transfer *transfer, size_t *length) {
    *length = transfer->answer_length;
    return (const uint8_t *)transfer->answer;
}

void tapline_transfer_forget(tapline_transfer *transfer) { transfer->answer_length = 0; }

void tapline_transfer_free(tapline_transfer *transfer) {
    if (!transfer) return;
    if (transfer->set) {
        curl.multi_remove_handle(transfer->set->multi, transfer->easy);
        transfer->set->active--;
    }
    if (transfer->easy) curl.easy_cleanup(transfer->easy);
    curl.slist_free_all(transfer->headers);
    free(transfer->answer);
    free(transfer);
}
