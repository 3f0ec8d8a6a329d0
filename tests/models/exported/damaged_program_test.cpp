// Files of torch.export.save with an entry that is changed.
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "io/exported/archive.h"
#include "io/exported/program.h"
#include "models/exported/exported_model.h"
#include "models/exported/python_functions.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class DamagedProgram : public testing::Test {
 protected:
  using Change = std::function<void(Json& json)>;

  // convnet.pt2 with a change in the JSON of one of its records.
  std::string file(const std::string& record, const Change& change) const {
    caffe2::serialize::PyTorchStreamReader reader(TUTTI_SOURCE_DIR "/tests/golden/exported/convnet.pt2");
    const std::string path = scratch_.path("net.pt2");
    caffe2::serialize::PyTorchStreamWriter writer(path);
    for (const std::string& name : reader.getAllRecords()) {
      if (name.starts_with(".data/") || name == "version" || name == "byteorder") continue;
      const auto [data, bytes] = reader.getRecord(name);
      std::string text(static_cast<const char*>(data.get()), bytes);
      if (name == record) {
        Json json = Json::parse(text);
        change(json);
        text = json.dump();
      }
      writer.writeRecord(name, text.data(), text.size());
    }
    writer.writeEndOfFile();
    return path;
  }

  // `change`: of the graph.
  std::string refusal(const Change& change) const {
    const std::string path =
        file("models/model.json", [&](Json& json) { change(json["graph_module"]["graph"]); });
    return message_of<UserError>([&] { ExportedModel model({.path = path}); });
  }

  static Json& node(Json& graph, const std::string& target, const std::string& module) {
    for (Json& one : graph["nodes"])
      if (one["target"] == "torch.ops.aten." + target &&
          one["metadata"]["nn_module_stack"].get<std::string>().find(module) != std::string::npos)
        return one;
    throw std::logic_error("the program has no " + target);
  }

  Scratch scratch_;
};

TEST_F(DamagedProgram, IsReadWithoutAChange) {
  EXPECT_NO_THROW(ExportedModel({.path = file("models/model.json", [](Json&) {})}));
}

TEST_F(DamagedProgram, OfNoJsonIsDescribedInPlainWords) {
  EXPECT_THAT(message_of<UserError>([] { exported::parse_program("{"); }),
              testing::EndsWith("no JSON from byte 2 on"));
}

TEST_F(DamagedProgram, WeightsOfAnotherRankAreRefused) {
  const auto flatten = [](const char* value) {
    return [value](Json& graph) { graph["tensor_values"][value]["sizes"] = {{{"as_int", 6}}}; };
  };
  EXPECT_THAT(refusal(flatten("p_stem_0_weight")), HasSubstr("has no weight of 4 dimensions"));
  EXPECT_THAT(refusal(flatten("p_head_weight")), HasSubstr("has no weight of 2 dimensions"));
}

TEST_F(DamagedProgram, SizesThatAreNoWholeNumbersAreRefused) {
  const auto with_size = [](const Json& size) {
    return [size](Json& graph) { graph["tensor_values"]["p_stem_0_weight"]["sizes"][0] = size; };
  };
  EXPECT_THAT(refusal(with_size({{"as_float", 6.5}})), HasSubstr("a size that is no whole number"));
  EXPECT_THAT(refusal(with_size({{"as_int", -1}})), HasSubstr("a size that is no whole number"));
  EXPECT_THAT(refusal(with_size({{"as_int", 1e300}})), HasSubstr("a number that is not whole"));
  EXPECT_THAT(refusal(with_size({{"as_int", INT64_MAX}})), HasSubstr("is too large"));
}

TEST_F(DamagedProgram, NumbersThatAreTextsAreRefused) {
  EXPECT_THAT(refusal([](Json& graph) {
                node(graph, "batch_norm.default", "stem.1")["inputs"][7]["arg"] = {{"as_float", "much"}};
              }),
              HasSubstr("a text that is no number"));
}

TEST_F(DamagedProgram, ArgumentsThatAreMissingAreRefused) {
  EXPECT_THAT(
      refusal([](Json& graph) { node(graph, "batch_norm.default", "block.norm")["inputs"].erase(0); }),
      testing::Not(""));
}

TEST_F(DamagedProgram, DeepNestingIsRefused) {
  std::string begin, end;
  for (int depth = 0; depth < 60'000; ++depth) {
    begin += R"({"as_graph":{"graph":{"inputs":[)";
    end += "]}}}";
  }
  const std::string program = R"({"graph_module":{"graph":{"inputs":[)" + begin + end + "]}}}";
  EXPECT_THAT(message_of<UserError>([&] { exported::parse_program(program); }),
              HasSubstr("nested too deeply"));
  EXPECT_THAT(refusal([](Json& graph) {
                std::string stack = "a,a,A";
                for (int depth = 0; depth < 50'000; ++depth) stack += ";a" + std::to_string(depth) + ",a.a,A";
                node(graph, "conv2d.default", "stem.0")["metadata"]["nn_module_stack"] = stack;
              }),
              HasSubstr("nested too deeply"));
}

TEST_F(DamagedProgram, TensorsOutsideOfTheirRecordAreRefused) {
  const auto refusal = [&](const Change& change) {
    const std::string path = file("data/weights/model_weights_config.json", [&](Json& json) {
      change(json["config"]["stem.0.weight"]["tensor_meta"]);
    });
    at::Tensor to = at::empty({6, 3, 3, 3});
    return message_of<UserError>([&] { exported::Archive(path).read("stem.0.weight", to); });
  };
  EXPECT_THAT(refusal([](Json& meta) { meta["storage_offset"] = {{"as_int", 1}}; }), HasSubstr("cut off"));
  EXPECT_THAT(refusal([](Json& meta) { meta["storage_offset"] = {{"as_int", -4}}; }), HasSubstr("cut off"));
  EXPECT_THAT(refusal([](Json& meta) {
                meta["strides"][0] = {{"as_int", INT64_MAX}};
              }),
              HasSubstr("cut off"));
  EXPECT_THAT(refusal([](Json& meta) { meta["sizes"][0] = {{"as_int", 5}}; }), HasSubstr("another shape"));
}

TEST_F(DamagedProgram, OperatorsThatDoMoreThanComputeAreRefusedByName) {
  for (const std::string name :
       {"aten.from_file.default", "aten.set_.source_Tensor", "aten.resize_.default",
        "aten._unsafe_view.default", "aten._reshape_alias.default", "aten.embedding_dense_backward.default",
        "aten._print.default", "quantized.linear.default", "profiler._record_function_enter.default"})
    EXPECT_THAT(
        refusal([&](Json& graph) { node(graph, "reshape.default", "")["target"] = "torch.ops." + name; }),
        AllOf(HasSubstr(name + " is refused"), HasSubstr("may call those that compute")))
        << name;
}

TEST_F(DamagedProgram, NumbersDividedByZeroAreRefused) {
  for (const char* name : {"_operator.floordiv", "_operator.mod"}) {
    const auto function = exported::python_function(name);
    EXPECT_THAT(message_of<UserError>([&] {
                  function({int64_t{4}, int64_t{0}});
                }),
                HasSubstr("divided by zero"));
  }
  EXPECT_NO_THROW(exported::python_function("_operator.floordiv")({INT64_MIN, int64_t{-1}}));
}

TEST_F(DamagedProgram, ArgumentsThatLibtorchTakesAsTheyAreAreRefused) {
  const auto refusal = [&](const std::function<void(Json & mean)>& change) {
    const std::string path = file("models/model.json", [&](Json& json) {
      change(node(json["graph_module"]["graph"], "mean.dim", ""));
    });
    ExportedModel model({.path = path});
    materialise(model, 1);
    Batch batch;
    batch.set("input", at::ones({4, 3, 6, 6}));
    return message_of<UserError>([&] { model.forward(batch); });
  };
  EXPECT_THAT(refusal([](Json& mean) {
                mean["inputs"].push_back({{"name", "dtype"}, {"arg", {{"as_int", 99}}}, {"kind", 2}});
              }),
              HasSubstr("argument 4 is 99, which no such argument may be"));
  EXPECT_THAT(refusal([](Json& mean) { mean["target"] = "torch.ops.aten.mean.out"; }),
              HasSubstr("it has an argument 'out'"));
}

}  // namespace
}  // namespace tutti
