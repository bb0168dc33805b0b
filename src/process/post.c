/*
 * Descriptors over a socket.
 */
#include "process/post.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* The part of a message that is bytes. */
#define HEAD_SIZE(count) (offsetof(struct post, modules) + (count) * sizeof(uint32_t))

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(POST_FILES_MAX * sizeof(int))];
};

static bool post_send(int socket, struct post *post)
{
	union control control = {.room = {0}};
	struct iovec bytes = {post, HEAD_SIZE(post->count)};
	struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
	size_t size = post->count * sizeof(int);
	ssize_t sent;

	if (post->count) {
		message.msg_control = &control;
		message.msg_controllen = (socklen_t)CMSG_SPACE(size);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = (socklen_t)CMSG_LEN(size);
		memcpy(CMSG_DATA(&control.head), post->files, size);
	}
	do
		sent = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	post->count = 0;
	return sent > 0;
}

bool post_files(int socket, const int *files, size_t count)
{
	struct post post = {.kind = POST_FILES};

	for (size_t i = 0; i < count; i++) {
		if (files[i] < 0)
			continue;
		post.modules[post.count] = (uint32_t)i;
		post.files[post.count++] = files[i];
		if (post.count == POST_FILES_MAX && !post_send(socket, &post))
			return false;
	}
	return post.count == 0 || post_send(socket, &post);
}

bool post_word(int socket, enum post_kind kind, int file)
{
	struct post post = {.kind = kind, .count = file >= 0, .files = {file}};

	return post_send(socket, &post);
}

/* Of fewer files than were sent (too many are open here) those that came are the first ones. */
bool post_receive(int socket, struct post *post)
{
	union control control = {.room = {0}};
	struct iovec bytes = {post, sizeof *post};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = sizeof control};
	const struct cmsghdr *head;
	ssize_t got;

	do
		got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	while (got < 0 && errno == EINTR);
	if (got < (ssize_t)HEAD_SIZE(0))
		return false;
	post->count = 0;
	head = CMSG_FIRSTHDR(&message);
	if (head && head->cmsg_type == SCM_RIGHTS) {
		size_t size = head->cmsg_len - CMSG_LEN(0);

		memcpy(post->files, CMSG_DATA(head), size);
		post->count = (uint32_t)(size / sizeof(int));
	}
	return true;
}

int *post_files_room(struct arena *arena, size_t count)
{
	int *files = arena_array(arena, int, count);

	for (size_t i = 0; i < count; i++)
		files[i] = -1;
	return files;
}

void post_files_take(const struct post *post, int *files, size_t count)
{
	for (size_t i = 0; i < post->count; i++) {
		if (post->modules[i] < count && files[post->modules[i]] < 0)
			files[post->modules[i]] = post->files[i];
		else
			close(post->files[i]);
	}
}
