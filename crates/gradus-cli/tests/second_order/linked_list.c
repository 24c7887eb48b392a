/* A list made, walked and freed. n = 5. */
#include <stdlib.h>
struct link { double v; struct link *next; };
double linked_list(int n, double *x, double s) {
    struct link *head = 0;
    for (int i = 0; i < n; i++) {
        struct link *e = malloc(sizeof *e);
        *e = (struct link){x[i] * s, head};
        head = e;
    }
    double r = 1;
    for (struct link *e = head; e; e = e->next) r = r * e->v + e->v;
    while (head) {
        struct link *e = head->next;
        free(head);
        head = e;
    }
    return r;
}
