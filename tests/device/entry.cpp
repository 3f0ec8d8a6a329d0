#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <string_view>

#include "collectives/device_entry.h"
#include "tests/device/communicator.h"
#include "tests/device/graph.h"
#include "tests/device/rendezvous.h"
#include "tests/device/state.h"
#include "tests/device/streams.h"
#include "tests/device/wait_places.h"

namespace tutti::test_device {

namespace {

struct sigaction handler_before;

// Names the block on stderr. The access is then repeated, under the handler that was there before.
void name_fault(int number, siginfo_t* info, void*) {
  Lock lock(state().mutex, std::try_to_lock);
  if (lock.owns_lock()) {
    const std::string text = state().memory.describe(info->si_addr);
    if (!text.empty()) std::fprintf(stderr, "the host touched %s\n", text.c_str());
  }
  sigaction(SIGSEGV, &handler_before, nullptr);
  if (info->si_code <= 0) std::raise(number);  // sent by a process, so that nothing would repeat it
}

void name_faults() {
  struct sigaction action {};
  action.sa_sigaction = name_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &handler_before);
}

void report() {
  const Counters c = counters();
  std::ostringstream text;
  text << "test device: " << c.kernels << " kernels, " << c.late_kernels << " late, " << c.copies_to_device
       << " copies to the device, " << c.copies_to_host << " to the host, " << c.host_waits
       << " host waits\n";
  for (int device = 0; device < kDevices; ++device) {
    if (peak_bytes(device) > 0)
      text << "  peak of device " << device << ": " << peak_bytes(device) << " bytes\n";
  }
  auto stalled = stalls();
  for (const auto& [cause, count] : host_waits())
    text << "  host waits: " << cause << ", " << count << ", stalls " << stalled[cause] << "\n";
  for (const std::string& place : wait_places()) text << "  waits at: " << place << "\n";
  std::fputs(text.str().c_str(), stderr);
}

constexpr std::string_view kLeaveOut = "leave_out=";

void start(const std::string& options) {
  install();
  bool late = false, reports = false;
  std::istringstream in(options);
  for (std::string option; std::getline(in, option, ',');) {
    const bool omits = option.starts_with(kLeaveOut);
    TORCH_CHECK(option == "late" || option == "report" || omits, "the test device has no option '", option,
                "'; it has: late, report, leave_out=PLACE");
    if (omits) leave_out(option.substr(kLeaveOut.size()));
    late = late || option == "late";
    reports = reports || option == "report";
  }
  {
    const Lock lock(state().mutex);
    state().memory.prints = reports;
  }
  set_mode(late ? Mode::kLate : Mode::kEager);
  static const bool once = (name_faults(), true);
  static_cast<void>(once);
  if (!reports) return;
  static const bool registered = std::atexit(report) == 0 && std::at_quick_exit(report) == 0;
  static_cast<void>(registered);
}

}  // namespace

}  // namespace tutti::test_device

using namespace tutti::test_device;

extern "C" {

int tutti_device_count() { return kDevices; }
int tutti_device_type() { return static_cast<int>(kType); }
const char* tutti_device_name(int) { return "test device"; }
void tutti_device_limit_memory(int device, int64_t bytes) { set_budget(device, bytes); }
bool tutti_device_watch_memory(void (*before)(int, std::size_t)) {
  watch_memory(before);
  return true;
}
void tutti_device_start(const char* options) { start(options); }
tutti::DeviceGraph* tutti_device_make_graph(int) { return new Graph; }
void tutti_device_make_id(tutti::CommunicatorId* id) { *id = Rendezvous::make(); }
tutti::Communicator* tutti_device_connect(const tutti::CommunicatorId* id, int, int rank,
                                          const std::vector<int>* ranks) {
  return connect(*id, rank, *ranks).release();
}
}
