/* Teams, which stay with OpenMP's library, around a region of another file that asks which of them it is in. */
#include <omp.h>
#include <stdio.h>

int which(void);

/* How many teams were told something else than what they are. */
static int mistaken(void)
{
    int wrong = 0;
#pragma omp teams num_teams(2) reduction(+ : wrong)
    wrong += which() != 10 * omp_get_team_num() + omp_get_num_teams();
    return wrong;
}

int main(void)
{
    printf("%d %d\n", which(), mistaken());
}
