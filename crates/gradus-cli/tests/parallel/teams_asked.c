/* A region that asks in which team it is, and how many there are. */
#include <omp.h>

int which(void)
{
    int sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 100; i++)
        sum += 10 * omp_get_team_num() + omp_get_num_teams();
    return sum / 100;
}
