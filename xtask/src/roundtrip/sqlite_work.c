/* Work for sqlite: tables in memory, filled, indexed, joined, changed, searched. Prints a hash of every
 * value that came out and the processor time it took. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sqlite3.h"

static unsigned long long hash = 0xcbf29ce484222325u;

static void take_in(const char *text)
{
    for (; text && *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    hash = (hash ^ '|') * 0x100000001b3u;
}

static int row(void *unused, int columns, char **values, char **names)
{
    (void)unused;
    for (int i = 0; i < columns; i++) {
        take_in(names[i]);
        take_in(values[i]);
    }
    return 0;
}

static void run(sqlite3 *db, const char *sql)
{
    char *error = NULL;
    if (sqlite3_exec(db, sql, row, NULL, &error) != SQLITE_OK) {
        fprintf(stderr, "%s\n%s\n", sql, error);
        exit(3);
    }
}

int main(void)
{
    static const char *const work[] = {
        "create table star(id integer primary key, name text, ra real, dec real, mag real)",
        "create table seen(star int, night int, flux real, note text)",
        "with recursive n(i) as (select 1 union all select i+1 from n where i < 50000) "
        "insert into star select i, 'HD' || (i*7919 % 100003), (i*0.618033988) - cast(i*0.618033988 as int), "
        "(i % 180) - 90.0, 5 + (i*37 % 1000)/100.0 from n",
        "with recursive n(i) as (select 1 union all select i+1 from n where i < 150000) "
        "insert into seen select i*31 % 50000 + 1, i % 365, (i*i % 10007)/7.0, "
        "case when i % 3 = 0 then 'clear' when i % 5 = 0 then 'haze ' || i else null end from n",
        "create index seen_star on seen(star)",
        "create index star_mag on star(mag, name)",
        "select count(*), sum(flux), avg(flux), min(note), max(note) from seen",
        "select s.name, count(*), round(sum(flux), 3) from star s join seen on seen.star = s.id "
        "where s.mag between 6 and 7 group by s.id order by 3 desc, 1 limit 200",
        "update seen set flux = flux * 1.5, note = upper(note) where night % 7 = 3",
        "delete from seen where star in (select id from star where mag > 14.9)",
        "select night, count(distinct star), group_concat(distinct substr(note, 1, 4)) from seen group by night",
        "select name from star where name like '%99%' order by name limit 300",
        "with ranked as (select star, flux, row_number() over (partition by star order by flux desc) r from seen) "
        "select star, flux from ranked where r = 2 order by star limit 500",
        "select printf('%08.3f %x %s', ra, id, hex(name)) from star where id % 97 = 0",
        "select json_group_array(json_object('id', id, 'mag', mag)) from star where id < 200",
        "select date('2000-01-01', '+' || night || ' days'), total(flux) from seen group by night having count(*) > 100",
        "pragma integrity_check",
    };
    sqlite3 *db;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK)
        return 2;
    const clock_t start = clock();
    for (size_t i = 0; i < sizeof work / sizeof *work; i++)
        run(db, work[i]);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    printf("hash %016llx\nseconds %.6f\n", hash, seconds);
    return sqlite3_close(db) == SQLITE_OK ? 0 : 4;
}
