#include "actors/supervisor.h"

#include <gtest/gtest.h>

#include "sim/sim_scheduler.h"
#include "tests/runtime/scratch.h"
#include "tests/runtime/scripted_actor.h"

namespace tutti {
namespace {

using std::chrono::seconds;

// Rank 0's Supervisor, in made-up time, among actors that do what the test says; rank 1 is heard twice a
// second, as far as the Supervisor takes note of it.
class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() {
    cast_.has_reporter = true;
    cast_.loader = play_quietly("loader");
    cast_.checkpointer = play_quietly("checkpointer");
    cast_.supervisor = scheduler_.reserve("supervisor", 0);
    cast_.sync = scheduler_.reserve("sync", 0);
    cast_.compute = scheduler_.reserve("compute", 0);
    cast_.reporter = scheduler_.reserve("reporter", 0);
    play(scheduler_, cast_.sync,
         {.receive = [this](Context& c, Envelope& e) { sync(c, e); },
          .idle = [this](Context& c) { return beat(c); }});
  }

  void run(Nanoseconds hang_timeout) {
    Supervisor::Options options;
    options.world = 2;
    options.run_dir = folder_.path("run");
    options.shelf.folder = folder_.path("run/checkpoints");
    options.nonce = "nonce";
    options.hang_timeout = hang_timeout;
    scheduler_.install(cast_.supervisor,
                       std::make_unique<Supervisor>(options, cast_, disk_, *log_, recorder_, outcome_));
    scheduler_.run();
  }

  ActorId play_quietly(const char* name) {
    const ActorId id = scheduler_.reserve(name, 0);
    play(scheduler_, id, {.receive = [](Context& context, Envelope& envelope) {
           if (envelope.message.get_if<Stop>()) context.stop();
         }});
    return id;
  }

  void sync(Context& context, Envelope& envelope) {
    if (auto* said = envelope.message.get_if<Agree>())
      context.send(cast_.supervisor, Agreed{{said->text, "+"}});
    if (envelope.message.get_if<Stop>()) context.stop();
  }

  std::optional<TimePoint> beat(Context& context) {
    if (play_dead_ || (noting_ && !noting_.ready())) return context.now() + std::chrono::milliseconds(10);
    Heard heard;
    heard.peers[1] = {context.now(), {"forward", 3, 0.1, false}};
    noting_ = context.request<Noted>(cast_.supervisor, std::move(heard));
    return context.now() + std::chrono::milliseconds(500);
  }

  Scratch folder_;
  PosixDisk disk_;
  std::unique_ptr<Log> log_ = make_null_log();
  RingRecorder recorder_;
  RunOutcome outcome_;
  SimScheduler scheduler_;
  Cast cast_;
  Pending<Noted> noting_;
  bool play_dead_ = false;  // rank 1
};

// A checkpoint is published, and the disk takes its time; the others were well all along.
TEST_F(SupervisorTest, OneThatWasBusyItselfBlamesNobodyForSilence) {
  play(scheduler_, cast_.reporter, {.receive = [](Context& context, Envelope& envelope) {
         if (envelope.message.get_if<Stop>()) return context.stop();
         context.sleep(seconds(10));
         context.reply(envelope, MetricsWritten{});
       }});
  play(scheduler_, cast_.compute, {.receive = [this](Context& context, Envelope& envelope) {
         if (envelope.message.get_if<Prepare>()) context.send(cast_.supervisor, Prepared{});
         if (envelope.message.get_if<Stop>()) context.stop();
         if (!envelope.message.get_if<Start>()) return;
         Durable part;
         part.name = "ep1-ba1";
         context.send(cast_.supervisor, Durable(part));
         context.send(cast_.supervisor, ControlReceived{1, durable_text(part)});
         context.sleep(seconds(20));
         context.send(cast_.supervisor, TrainingDone{});
       }});
  EXPECT_NO_THROW(run(seconds(3)));
}

TEST_F(SupervisorTest, ARankThatIsNotHeardIsBlamed) {
  play(scheduler_, cast_.reporter, {});
  play(scheduler_, cast_.compute, {.receive = [this](Context& context, Envelope& envelope) {
         if (envelope.message.get_if<Prepare>()) context.send(cast_.supervisor, Prepared{});
         if (!envelope.message.get_if<Start>()) return;
         play_dead_ = true;
       }});
  EXPECT_THROW(run(seconds(3)), Aborted);
}

}  // namespace
}  // namespace tutti
