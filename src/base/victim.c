/*
 * /proc/self/oom_score_adj (proc_pid_oom_score_adj(5)): everybody may raise it, and it is inherited.
 */
#include "base/victim.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"

void victim_volunteer(void)
{
	static const char most[] = "1000";
	SCOPED_FD int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		file_write_whole(fd, (struct bytes){(const uint8_t *)most, sizeof most - 1});
}
