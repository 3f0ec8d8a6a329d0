#include "runtime/process/this_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "runtime/error.h"
#include "runtime/launcher.h"
#include "runtime/printable.h"
#include "runtime/process/shell.h"
#include "runtime/text.h"

// Defined in libtutti.so.
extern "C" const char* tutti_shared_build_stamp() __attribute__((weak));
extern "C" const char* tutti_commit() __attribute__((weak));

namespace tutti {

std::string build_stamp(const std::string& elsewhere) {
  return tutti_shared_build_stamp ? tutti_shared_build_stamp() : elsewhere;
}

std::string build_and_commit(const std::string& elsewhere) {
  return build_stamp(elsewhere) + ", commit " + (tutti_commit ? tutti_commit() : "unknown");
}

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

// Of a program the loader knows only the word it was started with, which need not be a path.
std::string path_of_code(const void* code) {
  Dl_info info{};
  link_map* object = nullptr;
  const bool is_known = dladdr1(code, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) != 0;
  const bool is_library = is_known && object && *object->l_name != '\0';
  return is_library ? std::filesystem::absolute(object->l_name).string()
                    : std::filesystem::read_symlink("/proc/self/exe").string();
}

std::string command_line(const std::function<std::string(const std::string& word)>& shown) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string line;
  for (std::string word; std::getline(file, word, '\0');)
    line += (line.empty() ? "" : " ") + shell_word(shown(word));
  return as_utf8(line);
}

namespace {

// In fixed memory, for signal handlers.
struct Reports {
  char file[4096] = "";
  int folder = AT_FDCWD;  // open, if it was there at the start
  char attempt[128] = "";
  char who[32] = "";
  int rank = 0;
};

Reports& reports() {
  static Reports all;
  return all;
}

void sleep_ms(int ms) {
  const timespec time{0, ms * 1'000'000};
  ::nanosleep(&time, nullptr);
}

// In its folder, wherever that was moved to.
int open_reports() {
  const Reports& all = reports();
  const char* slash = std::strrchr(all.file, '/');
  const char* name = all.folder >= 0 && slash ? slash + 1 : all.file;
  return ::openat(all.folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
}

// An address in the abstract namespace, which has no file and goes with the process.
struct AbstractName {
  sockaddr_un name{};
  socklen_t size = 0;

  explicit AbstractName(const std::string& text) {
    name.sun_family = AF_UNIX;
    const std::size_t length = text.copy(name.sun_path + 1, sizeof name.sun_path - 1);  // after a 0
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&name); }
};

int name_socket() { return ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

// True if a process of this user listens under the name: any user may bind it.
bool is_held_by_user(const AbstractName& name) {
  const int socket = name_socket();
  ucred holder{};
  socklen_t size = sizeof holder;
  const bool known = ::connect(socket, name.address(), name.size) == 0 &&
                     ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &holder, &size) == 0;
  ::close(socket);
  return known && holder.uid == ::geteuid();
}

}  // namespace

bool take_name(const std::string& text) {
  constexpr int kMostWaiting = 4096, kTries = 20;  // another process may have bound it, and not listen yet
  const AbstractName name(text);
  const int socket = name_socket();  // stays open until the process ends
  if (socket < 0) return true;
  if (::bind(socket, name.address(), name.size) == 0) {
    ::listen(socket, kMostWaiting);  // without success the others report too
    return true;
  }
  if (errno != EADDRINUSE) return true;
  ::close(socket);
  for (int i = 0; i < kTries; ++i, sleep_ms(5))
    if (is_held_by_user(name)) return false;
  return true;
}

void share_reports(const std::string& file, const std::string& attempt, int rank) {
  Reports& all = reports();
  if (all.folder >= 0) ::close(all.folder);
  all = {};
  if (file.size() >= sizeof all.file) return;
  file.copy(all.file, sizeof all.file - 1);
  attempt.copy(all.attempt, sizeof all.attempt - 1);
  const std::string who = "rank " + std::to_string(rank) + ": ";
  who.copy(all.who, sizeof all.who - 1);
  all.rank = rank;
  const std::size_t slash = file.rfind('/');
  if (slash == std::string::npos) return;
  const int folder = ::open(file.substr(0, slash + 1).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) all.folder = folder;
}

const char* reporting_rank() { return reports().who; }

bool first_to_report() {
  const Reports& all = reports();
  if (all.file[0] == 0) return true;
  const int file = open_reports();  // stays open until the process ends
  // In a removed folder ranks cannot agree on who reports: rank 0 does, whose Supervisor watches the folder.
  if (file < 0) return errno != ENOENT || all.folder < 0 || all.rank == 0;
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  char reported[sizeof all.attempt] = "";
  const ssize_t got = ::pread(file, reported, sizeof reported - 1, 0);
  if (got > 0 && std::strcmp(reported, all.attempt) == 0) return false;
  if (::ftruncate(file, 0) != 0) return true;
  return ::pwrite(file, all.attempt, std::strlen(all.attempt), 0) != 0;
}

void report_unshared(const std::string& error) {
  const auto rank = launched_rank();
  if (!rank) return print_error(error);
  static const bool first =
      take_name("tutti reports of " + std::to_string(::getppid()) + ", user " + std::to_string(::geteuid()));
  if (first) print_error(rank_message(*rank, error));
  linger();
}

void linger() { sleep_ms(500); }

}  // namespace tutti
