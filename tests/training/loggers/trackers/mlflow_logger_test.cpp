#include "training/loggers/trackers/mlflow_logger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/runtime/scratch.h"
#include "training/loggers/trackers/mlflow_files.h"
#include "training/loggers/trackers/mlflow_sender.h"
#include "training/loggers/trackers/mlflow_server.h"

namespace tutti {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// A tracking server in memory: what MLflow's own keeps of a run.
class FakeServer {
 public:
  HttpAnswer answer(const HttpRequest& request) {
    ++requests;
    if (is_down) return {0, "", "Couldn't connect to server"};
    if (!answer_to_all.empty()) return {200, answer_to_all, ""};
    if (status_of_all != 0) return {status_of_all, R"({"error_code": "X", "message": "no"})", ""};
    const std::string path = request.url.substr(std::string("http://host/api/2.0/").size());
    if (path.starts_with("mlflow-artifacts/artifacts/")) {
      artifacts[path.substr(27)] = request.body;
      return {200, "{}", ""};
    }
    const json body = request.body.empty() ? json() : json::parse(request.body);
    if (path == "mlflow/experiments/get-by-name?experiment_name=my%20digits") {
      if (!has_experiment) return {404, R"({"error_code": "RESOURCE_DOES_NOT_EXIST"})", ""};
      return {200, R"({"experiment": {"experiment_id": "7"}})", ""};
    }
    if (path == "mlflow/experiments/create") has_experiment = true;
    if (path == "mlflow/experiments/create") return {200, R"({"experiment_id": "7"})", ""};
    if (path == "mlflow/runs/search") return {200, runs == 0 ? "{}" : R"({"runs": [)" + run() + "]}", ""};
    if (path == "mlflow/runs/create") {
      ++runs;
      created = body;
      if (std::exchange(loses_answer_to_create, false)) return {0, "", "Timeout was reached"};
      return {200, R"({"run": )" + run() + "}", ""};
    }
    if (path == "mlflow/runs/get?run_id=r1") return {200, R"({"run": )" + run() + "}", ""};
    if (path == "mlflow/runs/update") status = body["status"];
    if (path == "mlflow/runs/update") return {200, "{}", ""};
    EXPECT_EQ(path, "mlflow/runs/log-batch");
    EXPECT_EQ(body["run_id"], "r1");
    EXPECT_LE(body.value("metrics", json::array()).size(), 1000u);
    for (const json& metric : body.value("metrics", json::array())) points.push_back(metric);
    for (const json& param : body.value("params", json::array())) params[param["key"]] = param["value"];
    return {200, "{}", ""};
  }

  std::vector<int64_t> steps(const std::string& key) const {
    std::vector<int64_t> steps;
    for (const json& point : points)
      if (point["key"] == key) steps.push_back(point["step"]);
    return steps;
  }

  bool is_down = false, has_experiment = false, loses_answer_to_create = false;
  int status_of_all = 0;
  int requests = 0, runs = 0;
  std::string answer_to_all;
  json created;
  std::string status;
  std::vector<json> points;
  std::map<std::string, std::string> params, artifacts;

 private:
  std::string run() const {
    json metrics = json::array(), known = json::array();
    for (const json& point : points) metrics.push_back(point);  // in rising order: the last counts
    for (const auto& [key, value] : params) known.push_back({{"key", key}, {"value", value}});
    return json{{"info", {{"run_id", "r1"}, {"artifact_uri", "mlflow-artifacts:/7/r1/artifacts"}}},
                {"data", {{"metrics", metrics}, {"params", known}}}}
        .dump();
  }
};

class FakeClient final : public HttpClient {
 public:
  explicit FakeClient(FakeServer& server) : server_(server) {}
  HttpAnswer send(const HttpRequest& request) override { return server_.answer(request); }
  void cancel() override {}

 private:
  FakeServer& server_;
};

class MlflowTest : public testing::Test {
 protected:
  struct CountingClock final : Clock {
    TimePoint now() const override { return TimePoint(std::chrono::hours(++hours)); }
    int64_t unix_ms() const override { return ms; }
    mutable int64_t hours = 0;
    int64_t ms = 1'700'000'000'000;
  };

  LogStart start(int64_t step = 0) const {
    LogStart start{.run_name = "trial", .run_dir = scratch_.path()};
    start.step = start.at.batch = step;
    start.resumes = step > 0;
    return start;
  }
  static LogTime at(int64_t step, int64_t batch) {
    LogTime time{.step = step};
    time.at.batch = batch;
    return time;
  }
  static void steps(LoggerDestination& logger, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      logger.log_metrics({{"loss/train", static_cast<double>(step)}}, at(step, step - 1));
      logger.log_metrics({{"eval", static_cast<double>(10 * step)}}, at(step, step));
      logger.step_end(at(step, step));
      logger.flush(false);
    }
  }
  Warn warn() {
    return [this](const std::string& what) { warnings_.push_back(what); };
  }
  MlflowRun run() const { return {"my digits", "", "me", {{"team", "vision"}}}; }
  MlflowLogger files() {
    return MlflowLogger(
        std::make_unique<MlflowFiles>(disk_, clock_, scratch_.path("mlruns"), run(), 0, warn()));
  }
  MlflowLogger server(bool is_reached = true) {
    return MlflowLogger(std::make_unique<MlflowServer>(
        disk_, clock_, warn(), is_reached ? std::make_unique<FakeClient>(fake_) : nullptr,
        MlflowServer::Options{"http://host", run(), 0.01}));
  }
  // The folder of the newest experiment's only run.
  std::string run_folder() const {
    const std::string experiment = scratch_.path("mlruns/") + disk_.list(scratch_.path("mlruns")).back();
    for (const auto& name : disk_.list(experiment))
      if (name.size() == 32) return experiment + "/" + name;
    return "";
  }
  // A metric's file without the times.
  std::string metric(const std::string& name) const {
    std::istringstream lines(read_text(run_folder() + "/metrics/" + name));
    std::string rest;
    for (std::string line; std::getline(lines, line);) rest += line.substr(line.find(' ') + 1) + "\n";
    return rest;
  }
  static void finish(LoggerDestination& logger) {
    while (!logger.finish(false)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  MlflowSender sender(const LogStart& start, MlflowIds ids) {
    return {disk_, clock_, warn(), client_, "http://host", run(), start, std::move(ids)};
  }

  Scratch scratch_;
  PosixDisk disk_;
  CountingClock clock_;
  FakeServer fake_;
  FakeClient client_{fake_};
  std::vector<std::string> warnings_;
};

TEST_F(MlflowTest, FilesHaveTheStoresLayout) {
  auto one = files();
  one.open(start());
  one.log_hyperparameters({{"optimizer.lr", 0.1}, {"train.ema", true}, {"../x", std::string("sgd")}},
                          at(1, 0));
  one.log_metrics({{"loss/train", 0.1}, {"bad", std::nan("")}}, at(1, 0));
  one.log_metrics({{"cpu_percentage", 5}}, at(1, 0));
  one.log_text({"note", "hello"}, at(1, 0));
  one.log_table({"generations", {"prompt"}, {{"a"}}}, at(13, 12));
  EXPECT_TRUE(one.finish(false));
  const std::string folder = run_folder();
  EXPECT_EQ(read_text(folder + "/metrics/loss/train"), "1700000000000 0.1 0\n");
  EXPECT_EQ(metric("bad"), "NaN 0\n");
  EXPECT_EQ(metric("system/cpu_percentage"), "5 0\n");
  EXPECT_EQ(read_text(folder + "/params/optimizer.lr"), "0.1");
  EXPECT_EQ(read_text(folder + "/params/train.ema"), "true");
  EXPECT_EQ(read_text(folder + "/params/_./x"), "sgd");
  EXPECT_EQ(read_text(folder + "/tags/team"), "vision");
  EXPECT_EQ(read_text(folder + "/artifacts/texts/note-000000.txt"), "hello");
  EXPECT_EQ(read_text(folder + "/artifacts/tables/generations-000012.json"),
            R"({"columns": ["prompt"], "data": [["a"]]})");
  EXPECT_THAT(read_text(folder + "/meta.yaml"),
              AllOf(HasSubstr("\nrun_name: \"trial\"\n"), HasSubstr("\nstatus: 3\n"),
                    HasSubstr("\nend_time: 1700000000000\n"), HasSubstr("/artifacts\"\n")));
  EXPECT_THAT(read_text(std::filesystem::path(folder).parent_path() / "meta.yaml"),
              HasSubstr("\nname: \"my digits\"\n"));
}

TEST_F(MlflowTest, FilesOfAKilledRunContinueWithoutRepeatedPoints) {
  {
    auto killed = files();
    killed.open(start());
    steps(killed, 1, 5);
    killed.flush(true);
  }
  const std::string folder = run_folder(), loss = folder + "/metrics/loss/train";
  write_text(loss, read_text(loss) + "17000");  // torn
  EXPECT_THAT(read_text(folder + "/meta.yaml"), HasSubstr("status: 1\n"));
  auto resumed = files();
  resumed.open(start(3));
  steps(resumed, 4, 4);
  EXPECT_TRUE(resumed.finish(false));
  EXPECT_EQ(run_folder(), folder);
  EXPECT_EQ(metric("loss/train"), "1 0\n2 1\n3 2\n4 3\n");
  EXPECT_EQ(metric("eval"), "10 1\n20 2\n30 3\n40 4\n");
}

// "a" is a file, and would have to be the folder of "a/b".
TEST_F(MlflowTest, AMetricThatCannotBeWrittenHindersNoOther) {
  auto one = files();
  one.open(start());
  for (int64_t step = 1; step <= 3; ++step) {
    one.log_metrics({{"a", 1.0}, {"a/b", 2.0}, {"z", 3.0}}, at(step, step));
    one.flush(true);
  }
  EXPECT_EQ(metric("a"), "1 1\n1 2\n1 3\n");
  EXPECT_EQ(metric("z"), "3 1\n3 2\n3 3\n");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("/metrics/a")));
}

TEST_F(MlflowTest, RunsOfAnExperimentShareItsFolder) {
  for (int i = 0; i < 2; ++i) {
    ++clock_.ms;
    auto one = files();
    one.open(start());
  }
  EXPECT_THAT(disk_.list(scratch_.path("mlruns")), SizeIs(1));
  EXPECT_THAT(disk_.list(std::filesystem::path(run_folder()).parent_path()), SizeIs(3));
}

TEST_F(MlflowTest, AServerGetsTheRun) {
  auto one = server();
  one.open(start());
  one.log_hyperparameters({{"optimizer.lr", 0.1}}, at(1, 0));
  steps(one, 1, 3);
  one.log_metrics({{"bad", -std::numeric_limits<double>::infinity()}}, at(3, 3));
  one.log_text({"note", "hello"}, at(3, 3));
  finish(one);
  EXPECT_EQ(fake_.created["run_name"], "trial");
  EXPECT_THAT(fake_.steps("loss/train"), ElementsAre(0, 1, 2));
  EXPECT_THAT(fake_.steps("eval"), ElementsAre(1, 2, 3));
  EXPECT_EQ(fake_.points.back()["value"], "-Infinity");
  EXPECT_EQ(fake_.points.front()["timestamp"], 1'700'000'000'000);
  EXPECT_EQ(fake_.params["optimizer.lr"], "0.1");
  EXPECT_EQ(fake_.artifacts["7/r1/artifacts/texts/note-000003.txt"], "hello");
  EXPECT_EQ(fake_.status, "FINISHED");
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(MlflowTest, AKilledRunContinuesOnTheServerWithoutRepeatedPoints) {
  {
    auto killed = server();
    killed.open(start());
    steps(killed, 1, 5);
    finish(killed);
  }
  auto resumed = server();
  resumed.open(start(3));
  steps(resumed, 4, 7);
  finish(resumed);
  EXPECT_EQ(fake_.runs, 1);
  EXPECT_THAT(fake_.steps("loss/train"), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(fake_.steps("eval"), ElementsAre(1, 2, 3, 4, 5, 6, 7));
}

TEST_F(MlflowTest, ARunThatFailedIsMarkedSo) {
  const auto in_files =
      std::make_shared<MlflowFiles>(disk_, clock_, scratch_.path("mlruns"), run(), 0, warn());
  const auto on_server =
      std::make_shared<MlflowServer>(disk_, clock_, warn(), std::make_unique<FakeClient>(fake_),
                                     MlflowServer::Options{"http://host", run(), 0.01});
  for (const std::shared_ptr<MlflowStore>& store :
       {std::shared_ptr<MlflowStore>(in_files), std::shared_ptr<MlflowStore>(on_server)}) {
    store->fail_run();  // before its start
    MlflowLogger one(store);
    one.open(start());
    steps(one, 1, 3);
    store->fail_run();
  }
  EXPECT_EQ(metric("loss/train"), "1 0\n2 1\n3 2\n");
  EXPECT_THAT(read_text(run_folder() + "/meta.yaml"), HasSubstr("\nstatus: 4\n"));
  EXPECT_EQ(fake_.status, "FAILED");
  EXPECT_THAT(fake_.steps("loss/train"), ElementsAre(0, 1, 2));
}

// The run keeps its address.
TEST_F(MlflowTest, AddressesHaveNoSecrets) {
  const auto check = [](const std::string& uri) {
    check_tracking_uri(Setting(uri, "tracking_uri", {"file"}));
  };
  for (const char* secret : {"http://host/?token=a", "http://host/#a", "https://me:a@host"})
    EXPECT_THAT(message_of<UserError>([&] { check(secret); }), HasSubstr("expected an address without"));
  EXPECT_THAT(message_of<UserError>([&] { check("https://me:hunter2@host"); }), Not(HasSubstr("hunter2")));
  for (const char* wrong : {"http://", "http://a b", "http://host:99999", "http://host:0/x"})
    EXPECT_THAT(message_of<UserError>([&] { check(wrong); }), HasSubstr("expected a host"));
  for (const char* good : {"http://host:5000/path", "https://[::1]:5000", "http://127.0.0.1"})
    EXPECT_NO_THROW(check(good));
}

TEST_F(MlflowTest, ARunThatDivergedHasFailed) {
  auto one = server();
  one.open(start());
  one.log_training_end({.skipped_at_end = 4}, at(4, 4));
  finish(one);
  EXPECT_EQ(fake_.status, "FAILED");
}

// The server has points up to step 4, which the changed run repeats from step 3 on.
TEST_F(MlflowTest, PointsOfAChangedRunThatAreNotSentAreSaid) {
  for (const char* change : {"", "optimizer.lr = 0.05 (was 0.1)"}) {
    LogStart begin = start(change[0] ? 3 : 0);
    if (change[0]) begin.recipe_changes = {change};
    auto one = server();
    one.open(begin);
    steps(one, change[0] ? 4 : 1, 5);
    finish(one);
  }
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("keeps the points of the earlier attempt")));
}

TEST_F(MlflowTest, ADeadServerCostsNoRecord) {
  fake_.is_down = true;
  {
    auto one = server();
    one.open(start());
    steps(one, 1, 3);
    one.flush(true);
    finish(one);
  }
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("http://host"), HasSubstr("Couldn't connect")),
                                     HasSubstr("lacks 6 records")));
  fake_.is_down = false;
  auto resumed = server();
  resumed.open(start(3));
  finish(resumed);
  EXPECT_THAT(fake_.steps("loss/train"), ElementsAre(0, 1, 2));
  EXPECT_THAT(warnings_, SizeIs(2));
}

TEST_F(MlflowTest, ARequestWithoutAnswerIsRepeatedAndMakesOneRun) {
  server(/*is_reached=*/false).open(start());
  fake_.loses_answer_to_create = true;
  MlflowSender one = sender(start(), MlflowIds{.nonce = "n"});
  EXPECT_FALSE(one.send_all());
  EXPECT_TRUE(one.send_all());
  EXPECT_EQ(fake_.runs, 1);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("Timeout was reached"), HasSubstr("answers again")));
}

TEST_F(MlflowTest, MissingCredentialsAreNamedAndTheRecordsWait) {
  server(/*is_reached=*/false).open(start());
  fake_.status_of_all = 401;
  MlflowSender one = sender(start(), MlflowIds{.nonce = "n"});
  EXPECT_FALSE(one.send_all());
  EXPECT_FALSE(one.send_all());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("MLFLOW_TRACKING_TOKEN")));
}

// A login page, or another program's server.
TEST_F(MlflowTest, AnAnswerThatIsNotMlflowsTakesNothing) {
  server(/*is_reached=*/false).open(start());
  fake_.answer_to_all = "<html>Please log in</html>";
  MlflowSender one = sender(start(), MlflowIds{.nonce = "n"});
  EXPECT_FALSE(one.send_all());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("not MLflow's: <html>Please log in")));
}

TEST_F(MlflowTest, RecordsAreSentInRequestsOfAThousandPoints) {
  auto waiting = server(/*is_reached=*/false);
  waiting.open(start());
  LoggedMetrics many;
  for (int i = 0; i < 2500; ++i) many.emplace_back("norm/" + std::to_string(i), i);
  waiting.log_metrics(many, at(1, 0));
  EXPECT_TRUE(waiting.finish(false));
  MlflowSender one = sender(start(), MlflowIds{.nonce = "n", .run_id = "r1"});
  ++fake_.runs;
  EXPECT_TRUE(one.send_all());
  EXPECT_THAT(fake_.points, SizeIs(2500));
  EXPECT_EQ(one.unsent(), 0);
}

TEST_F(MlflowTest, AChangedParameterIsSaidOnce) {
  auto waiting = server(/*is_reached=*/false);
  waiting.open(start());
  waiting.log_hyperparameters({{"lr", 0.2}, {"seed", int64_t{1}}, {"momentum", 0.5}}, at(1, 0));
  waiting.finish(false);
  fake_.params = {{"lr", "0.1"}, {"momentum", "0.9"}};
  MlflowSender one = sender(start(), MlflowIds{.nonce = "n", .run_id = "r1"});
  EXPECT_TRUE(one.send_all());
  EXPECT_EQ(fake_.params["lr"], "0.1");
  EXPECT_EQ(fake_.params["seed"], "1");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("keeps the first value of lr, 0.1")));
}

}  // namespace
}  // namespace tutti
