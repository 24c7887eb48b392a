/* Stop watches, by the names that CUDA's samples use. Times are in milliseconds. */
#ifndef GRADUS_CUDA_HELPER_TIMER_H
#define GRADUS_CUDA_HELPER_TIMER_H
#include <time.h>

class StopWatchInterface {
    double begun = 0, last = 0, total = 0;
    int sessions = 0;
    bool running = false;
    static double now()
    {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
    }

  public:
    virtual ~StopWatchInterface() {}
    void start() { begun = now(); running = true; }
    void stop()
    {
        last = now() - begun;
        total += last;
        sessions++;
        running = false;
    }
    void reset()
    {
        last = total = 0;
        sessions = 0;
        if (running) begun = now();
    }
    float getTime() { return (float)(running ? total + now() - begun : total); }
    float getAverageTime() { return sessions > 0 ? (float)(total / sessions) : 0.0f; }
};
typedef StopWatchInterface StopWatchLinux;

static inline bool sdkCreateTimer(StopWatchInterface **timer) { *timer = new StopWatchInterface; return true; }
static inline bool sdkDeleteTimer(StopWatchInterface **timer) { delete *timer; *timer = 0; return true; }
static inline bool sdkStartTimer(StopWatchInterface **timer) { if (*timer) (*timer)->start(); return true; }
static inline bool sdkStopTimer(StopWatchInterface **timer) { if (*timer) (*timer)->stop(); return true; }
static inline bool sdkResetTimer(StopWatchInterface **timer) { if (*timer) (*timer)->reset(); return true; }
static inline float sdkGetTimerValue(StopWatchInterface **timer) { return *timer ? (*timer)->getTime() : 0.0f; }
static inline float sdkGetAverageTimerValue(StopWatchInterface **timer) { return *timer ? (*timer)->getAverageTime() : 0.0f; }
#endif
