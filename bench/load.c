// Load through an HTTP proxy: CONNECT, TLS, then HTTP/1.1 requests, one after the other on each connection.
//
//   load PROXY_PORT HOST PORT CONNECTIONS REQUESTS PREFIX PATHS RECONNECT
//
// Each connection is a thread with blocking sockets. Request n asks for PREFIX followed by n mod PATHS; with RECONNECT=1 each request has a
// connection of its own. Certificates are not checked: only the proxy's cost is measured, and every answer must be a 200 with a
// Content-Length. Prints one JSON object; exits 1 when any request failed.
//
// Build: cc -O2 -o load load.c -lssl -lcrypto -lpthread

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct target {
    int proxy_port;
    const char *host;
    int port;
    const char *prefix;
    int paths;
    int reconnect;
    SSL_CTX *tls;
};

struct connection {
    int fd;
    SSL *ssl;  // NULL until CONNECT has been answered
    char buffer[32768];
    int start, stop;  // what has been read and not yet consumed
};

struct worker {
    const struct target *target;
    pthread_t thread;
    long first, requests, done, failed;
};

static int write_all(struct connection *c, const char *data, int size) {
    while (size > 0) {
        int sent = c->ssl ? SSL_write(c->ssl, data, size) : (int)send(c->fd, data, size, MSG_NOSIGNAL);
        if (sent <= 0) return -1;
        data += sent;
        size -= sent;
    }
    return 0;
}

static int fill(struct connection *c) {
    if (c->start == c->stop) c->start = c->stop = 0;
    int room = (int)sizeof c->buffer - c->stop;
    if (room == 0) return -1;  // a head that does not fit
    int got = c->ssl ? SSL_read(c->ssl, c->buffer + c->stop, room) : (int)recv(c->fd, c->buffer + c->stop, room, 0);
    if (got <= 0) return -1;
    c->stop += got;
    return 0;
}

// Read one head and the body that its Content-Length announces. Returns 0 when the status is 200.
static int read_answer(struct connection *c) {
    char *end;
    while (!(end = memmem(c->buffer + c->start, c->stop - c->start, "\r\n\r\n", 4)))
        if (fill(c)) return -1;
    char *head = c->buffer + c->start;
    *end = 0;
    int ok = strncmp(head, "HTTP/1.1 200", 12) == 0;
    char *length = strcasestr(head, "\r\ncontent-length:");
    long body = length ? atol(length + 17) : 0;
    c->start = (int)(end + 4 - c->buffer);
    while (body > 0) {
        if (c->start == c->stop && fill(c)) return -1;
        long here = c->stop - c->start < body ? c->stop - c->start : body;
        c->start += (int)here;
        body -= here;
    }
    return ok ? 0 : -1;
}

static void hang_up(struct connection *c) {
    if (c->ssl) SSL_free(c->ssl);
    if (c->fd >= 0) close(c->fd);
    c->ssl = NULL;
    c->fd = -1;
}

static int dial(struct connection *c, const struct target *t) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(t->proxy_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    c->ssl = NULL;
    c->start = c->stop = 0;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) return -1;
    char ask[512];
    int size = snprintf(ask, sizeof ask, "CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n", t->host, t->port, t->host, t->port);
    if (write_all(c, ask, size) || read_answer(c)) return -1;
    c->ssl = SSL_new(t->tls);
    SSL_set_fd(c->ssl, c->fd);
    SSL_set_tlsext_host_name(c->ssl, t->host);
    return SSL_connect(c->ssl) == 1 ? 0 : -1;
}

static void *work(void *argument) {
    struct worker *w = argument;
    const struct target *t = w->target;
    struct connection *c = calloc(1, sizeof *c);
    c->fd = -1;
    for (long n = 0; n < w->requests; n++) {
        char ask[512];
        int size = snprintf(ask, sizeof ask,
                            "GET %s%ld HTTP/1.1\r\nHost: %s:%d\r\nUser-Agent: load/1\r\nAccept: */*\r\n"
                            "Authorization: Bearer not-a-real-key\r\n\r\n",
                            t->prefix, (w->first + n) % t->paths, t->host, t->port);
        if ((c->fd < 0 && dial(c, t)) || write_all(c, ask, size) || read_answer(c)) {
            w->failed++;
            hang_up(c);
        } else {
            w->done++;
            if (t->reconnect) hang_up(c);
        }
    }
    hang_up(c);
    free(c);
    return NULL;
}

int main(int count, char **argument) {
    if (count != 9) return 64;
    signal(SIGPIPE, SIG_IGN);  // a proxy that hangs up is a failed request
    struct target target = {atoi(argument[1]), argument[2], atoi(argument[3]), argument[6], atoi(argument[7]), atoi(argument[8]), NULL};
    int connections = atoi(argument[4]);
    long requests = atol(argument[5]), done = 0, failed = 0;
    target.tls = SSL_CTX_new(TLS_client_method());
    struct worker *workers = calloc(connections, sizeof *workers);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int i = 0; i < connections; i++) {
        workers[i] = (struct worker){.target = &target, .first = i * 7L, .requests = requests / connections};
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < connections; i++) {
        pthread_join(workers[i].thread, NULL);
        done += workers[i].done;
        failed += workers[i].failed;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    printf("{\"done\": %ld, \"failed\": %ld, \"seconds\": %.6f}\n", done, failed, seconds);
    return failed ? 1 : 0;
}
