// Files of torch.jit.save with a record that is changed, so that loading or running them would do more than
// compute.
#include <ATen/ops/ones.h>
#include <caffe2/serialize/inline_container.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>

#include "models/script/script_model.h"
#include "runtime/process/process_watch.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

const std::string kCall = "torch.linear(input, weight, bias)";

std::string with(std::string text, const std::string& old, const std::string& fresh) {
  const std::size_t at = text.find(old);
  if (at == text.npos) throw std::logic_error("the record has no '" + old + "'");
  return text.replace(at, old.size(), fresh);
}

// writes_buffer.pt, whose modules are a Linear and the one that calls it.
class RefusedScript : public testing::Test {
 protected:
  std::string file(const std::string& record, const std::string& old, const std::string& fresh) const {
    caffe2::serialize::PyTorchStreamReader reader(TUTTI_SOURCE_DIR "/tests/golden/scripts/writes_buffer.pt");
    const std::string path = scratch_.path("net.pt");
    caffe2::serialize::PyTorchStreamWriter writer(path);
    for (const std::string& name : reader.getAllRecords()) {
      if (name.starts_with(".data/") || name == "version" || name == "byteorder") continue;
      const auto [data, bytes] = reader.getRecord(name);
      std::string text(static_cast<const char*>(data.get()), bytes);
      if (name == record) text = with(text, old, fresh);
      writer.writeRecord(name, text.data(), text.size());
    }
    writer.writeEndOfFile();
    return path;
  }
  std::string refusal(const std::string& record, const std::string& old, const std::string& fresh) const {
    const std::string path = file(record, old, fresh);
    return message_of<UserError>([&] { ScriptModel model({.path = path}); });
  }
  // Of a file with another expression in forward of its Linear.
  std::string refusal_of_call(const std::string& call) const { return refusal(kLinear, kCall, call); }
  // Of a file with another line before it.
  std::string refusal_of_line(const std::string& line) const {
    return refusal(kLinear, "    return torch", "    " + line + "\n    return torch");
  }
  // Of a run of a file with another line before it.
  std::string error_of(const std::string& line) const {
    ScriptModel model({.path = file(kLinear, "    return torch", "    " + line + "\n    return torch")});
    materialise(model, 1);
    Batch batch;
    batch.set("input", at::ones({2, 4}));
    return message_of<UserError>([&] { model.forward(batch); });
  }
  std::string beside(const std::string& name) const { return scratch_.path(name); }

  static constexpr const char* kLinear = "code/__torch__/torch/nn/modules/linear/___torch_mangle_28.py";
  Scratch scratch_;
};

TEST_F(RefusedScript, IsReadWithoutAChange) {
  EXPECT_NO_THROW(ScriptModel({.path = file(kLinear, kCall, kCall)}));
}

TEST_F(RefusedScript, OperatorsThatDoMoreThanComputeAreRefusedByName) {
  const std::pair<const char*, const char*> calls[] = {
      {"torch.set_(input, weight)", "aten::set_"},
      {"torch.resize_(input, [9, 9])", "aten::resize_"},
      {"torch.resize_as_(input, weight)", "aten::resize_as_"},
      {"input.resize_([9, 9])", "aten::resize_"},
      {"torch.as_strided_(input, [9], [1])", "aten::as_strided_"},
      {"torch._unsafe_view(input, [4])", "aten::_unsafe_view"},
      {"torch._reshape_alias(input, [99], [1])", "aten::_reshape_alias"},
      {"torch._sparse_coo_tensor_unsafe(input, weight, [4])", "aten::_sparse_coo_tensor_unsafe"},
      {"torch._fft_c2r(input, [0], 0, 99)", "aten::_fft_c2r"},
      {"torch.embedding_dense_backward(input, input, 3, -1, False)", "aten::embedding_dense_backward"},
      {"torch.quantize_per_tensor(input, 0.1, 0, 13)", "aten::quantize_per_tensor"},
      {"ops.quantized.batch_norm(input, None, None, input, input, 1., 1., 1)", "quantized::batch_norm"}};
  for (const auto& [call, name] : calls)
    EXPECT_THAT(refusal_of_call(call),
                AllOf(HasSubstr(name), HasSubstr("is refused: of libtorch's operators")))
        << call;
}

TEST_F(RefusedScript, StatementsThatChangeAProcessAreRefused) {
  const std::pair<std::string, const char*> lines[] = {
      {"torch.save(input, \"" + beside("saved") + "\")", "aten::save"},
      {"torch.manual_seed(7)", "aten::manual_seed"},
      {"_0 = torch.from_file(\"" + beside("made") + "\", True, 4)", "aten::from_file"},
      {"torch._print(\"\\033]0;title\\007\")", "aten::_print"},
      {"\"title\"._print()", "aten::_print"},
      {"ops.aten._print(\"title\")", "aten::_print"},
      {"ops.prim.AddStatValue(\"a\", 1)", "prim::AddStatValue"},
      {"_0 = ops.profiler._record_function_enter_new(\"a\")", "profiler::_record_function_enter_new"}};
  for (const auto& [line, name] : lines)
    EXPECT_THAT(refusal_of_line(line), AllOf(HasSubstr(name), HasSubstr("is refused"))) << line;
  EXPECT_FALSE(std::filesystem::exists(beside("saved")));
  EXPECT_FALSE(std::filesystem::exists(beside("made")));
}

TEST_F(RefusedScript, CodeThatRunsWhenTheFileIsLoadedIsRefused) {
  const std::string made = "torch.from_file(\"" + beside("made") + "\", True, 4)";
  EXPECT_THAT(refusal(kLinear, "input: Tensor)", "input: Tensor, other: Tensor=torch.zeros([1]))"),
              HasSubstr("the default of an argument"));
  EXPECT_THAT(refusal(kLinear, "input: Tensor)", "input: Tensor, other: Tensor=" + made + ")"),
              HasSubstr("the default of an argument"));
  EXPECT_THAT(refusal(kLinear, "out_features : Final[int] = 3", "out_features : Final[int] = torch.len([1])"),
              HasSubstr("a constant of a class"));
  EXPECT_THAT(refusal(kLinear, "  def forward",
                      "  def __setstate__(self, state: int) -> NoneType:\n    return None\n  def forward"),
              HasSubstr("__setstate__"));
  EXPECT_FALSE(std::filesystem::exists(beside("made")));
}

TEST_F(RefusedScript, ClassesOfLibtorchAreRefused) {
  EXPECT_THAT(refusal_of_line("_0 = __torch__.torch.classes.quantized.LinearPackedParamsBase.__new__()"),
              HasSubstr("a class of libtorch's"));
  EXPECT_THAT(refusal("data.pkl", "c__torch__\n", "c__torch__.torch.classes.quantized\n"),
              AllOf(HasSubstr("it wants to run '__torch__.torch.classes.quantized."),
                    EndsWith("which no script needs")));
  EXPECT_THAT(refusal("data.pkl", "_rebuild_tensor_v2", "_rebuild_qtensor"), HasSubstr("_rebuild_qtensor"));
}

TEST_F(RefusedScript, TensorsOutsideOfTheirRecordsAreRefused) {
  const std::string numbers = "K\x0ctQ", sizes = "(K\x03K\x04t", strides = "(K\x04K\x01t";
  EXPECT_THAT(refusal("data.pkl", sizes, "(K\x09K\x04t"), HasSubstr("lies outside its storage"));
  EXPECT_THAT(refusal("data.pkl", strides, "(K\x09K\x01t"), HasSubstr("lies outside its storage"));
  EXPECT_THAT(refusal("data.pkl", numbers, "K\xf0tQ"), HasSubstr("has 48 bytes, 960 are expected"));
}

// Libtorch takes a number here for a function, by the order in which functions were named.
TEST_F(RefusedScript, NumbersInPlaceOfFunctionsAreRefused) {
  EXPECT_THAT(refusal("data.pkl", "c__torch__\nWritesBuffer\nq", "K\x01q"),
              HasSubstr("a call of what is no Python object"));
  EXPECT_THAT(refusal("data.pkl", ")\x81}", "}"), HasSubstr("attributes of what is no object"));
}

TEST_F(RefusedScript, ArgumentsThatAreNoTypesAreRefused) {
  EXPECT_THAT(error_of("_0 = torch.sub_(torch.to(input, 99), 1)"),
              HasSubstr("argument 2 is 99, which no such argument may be"));
}

// As F.normalize has them, in a branch that does not run.
TEST_F(RefusedScript, OutputsInAnArgumentAreRefusedOnceTheyAreWritten) {
  EXPECT_NO_THROW(ScriptModel({.path = TUTTI_SOURCE_DIR "/tests/golden/scripts/names.pt"}));
  ScriptModel model({.path = file(kLinear, kCall, "torch.add(input, input, alpha=1, out=input)")});
  materialise(model, 1);
  Batch batch;
  batch.set("input", at::ones({2, 4}));
  EXPECT_THAT(message_of<UserError>([&] { model.forward(batch); }), HasSubstr("it has an argument 'out'"));
}

TEST_F(RefusedScript, TextsOfAFileReachNoTerminal) {
  for (const char* line : {"print(\"title\")", "torch.warn(\"title\")"}) {
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    EXPECT_THAT(error_of(line), HasSubstr("writes the buffer"));
    EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "") << line;
  }
}

// libtorch leaves out what nobody uses.
std::string uses(const std::string& number) {
  return "if torch.eq(" + number + ", -1):\n      ops.prim.RaiseException(\"\")\n    else:\n      pass";
}

TEST_F(RefusedScript, LoopsWithoutEndAreEnded) {
  const std::string forever = "_0 = True\n    while _0:\n      ";
  const auto grows = [&](const std::string& x, const std::string& step) {
    return "x = " + x + "\n    " + forever + step + "\n    " + uses("torch.len(x)");
  };
  for (const std::string& line :
       {forever + "_0 = True", "x = 0\n    for i in range(1000000000000):\n      x = i\n    " + uses("x"),
        grows("[1]", "x = torch.add(x, x)"), grows("[1]", "torch.extend(x, x)"),
        grows("[1]", "_1 = torch.append(x, 1)"), grows("[[1]]", "x = torch.add(x, x)"),
        grows("[[0]]", "_1 = torch.append(x, torch.mul([1], 1000000))"),
        grows("\"a\"", "x = torch.add(x, x)")})
    EXPECT_THAT(error_of(line),
                AllOf(HasSubstr(".py:"), HasSubstr("the program does not end within 10,000,000 steps")))
        << line;
}

// Each of the methods calls the next.
TEST_F(RefusedScript, CallsWithinEachOtherAreBounded) {
  const std::string
      self = "(self: __torch__.torch.nn.modules.linear.___torch_mangle_28.Linear,\n    input: Tensor)",
      end = ") -> Tensor:\n    return ";
  const auto chain = [&](int methods) {
    std::string code = "(self).m1(input, )\n";
    for (int i = 1; i <= methods; ++i) {
      code += "  def m" + std::to_string(i) + self.substr(0, self.size() - 1) + end;
      code += i < methods ? "(self).m" + std::to_string(i + 1) + "(input, )\n"
                          : "torch.linear(input, self.weight, self.bias)\n";
    }
    ScriptModel model({.path = file(kLinear, kCall, code)});
    materialise(model, 1);
    Batch batch;
    batch.set("input", at::ones({2, 4}));
    return message_of<UserError>([&] { model.forward(batch); });
  };
  EXPECT_THAT(chain(900), HasSubstr("writes the buffer")) << "it came to its end";
  EXPECT_THAT(chain(1100), HasSubstr(": more than 1,000 calls within each other"));
}

TEST_F(RefusedScript, ListsAndTextsOfAnyLengthAreRefused) {
  const std::string many = "1000000000000", none = "torch.expand(torch.zeros([1]), [" + many + "])";
  for (const std::string& call :
       {"torch.mul([1], " + many + ")", "torch.mul(" + many + ", [1])", "ops.prim.rangelist(" + many + ")",
        "torch.unbind(" + none + ")", "torch.split(" + none + ", 2)", "torch.chunk(" + none + ", 100000000)",
        "torch.tensor_split(input, " + many + ")"})
    EXPECT_THAT(error_of(uses("torch.len(" + call + ")")), HasSubstr("it makes ")) << call;
}

// Libtorch computes with constants as it reads them.
TEST_F(RefusedScript, TextsOfAnyLengthAreRefusedBeforeTheFileIsLoaded) {
  for (const char* call : {"ljust(\"a\", 1000000000000)", "rjust(\"a\", 1000000000000)",
                           "center(\"a\", 1000000000000)", "zfill(\"a\", 1000000000000)",
                           "expandtabs(\"\\t\", 1000000000000)", "replace(\"aa\", \"a\", \"aa\")"})
    EXPECT_THAT(refusal_of_line(uses("torch.len(torch." + std::string(call) + ")")), HasSubstr("is refused"))
        << call;
  EXPECT_THAT(refusal_of_line(uses("torch.factorial(1000000000000)")), HasSubstr("is refused"));
}

// Which libtorch would join as it reads them: 128 MB of constants.
[[noreturn]] void load_small(const std::string& path) {
  const auto peak_kb = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;
  };
  const long before = peak_kb();
  ScriptModel({.path = path});
  std::fprintf(stderr, "took %ld kB", peak_kb() - before);
  _exit(peak_kb() - before < 64 * 1024 ? 4 : 5);
}

TEST_F(RefusedScript, TextsThatDoubleLineByLineAreNotJoinedAhead) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const std::string join : {"s = torch.add(s, s)", "s = s + s", "s = torch.str((s, s))"}) {
    std::string lines = "s = \"a\"";
    for (int i = 0; i < 26; ++i) lines += "\n    " + join;
    lines += "\n    " + uses("torch.len(s)");
    EXPECT_EXIT(load_small(file(kLinear, "    return torch", "    " + lines + "\n    return torch")),
                testing::ExitedWithCode(4), "took")
        << join;
    EXPECT_THAT(error_of(lines), HasSubstr("the program does not end within 10,000,000 steps")) << join;
  }
}

TEST_F(RefusedScript, TextsThatAreJoinedWhenItRunsMayBeLong) {
  const std::string text(3000, 'a');
  EXPECT_THAT(error_of("s = torch.add(\"" + text +
                       "\", \"b\")\n    if torch.ne(torch.len(s), 3001):\n      "
                       "ops.prim.RaiseException(\"short\")\n    else:\n      pass"),
              HasSubstr("writes the buffer"));
}

TEST_F(RefusedScript, PlacesInTuplesMayCountFromTheEnd) {
  EXPECT_THAT(error_of("t = (input, input)\n    x = (t)[-1]\n    y = (t)[-2]"),
              HasSubstr("writes the buffer"));
}

// As one of types that differ in a list, with lines of the file.
TEST_F(RefusedScript, WarningsAboutAFileReachNoTerminal) {
  testing::internal::CaptureStderr();
  EXPECT_THAT(error_of("x = [1, \"a\"]"), HasSubstr("writes the buffer"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// In a trial on zeros, before there is a training that would end by itself.
[[noreturn]] void try_endless(const std::string& path) {
  hold_stop_signals();
  kill(getpid(), SIGTERM);
  try {
    const SampleSpec samples{.shapes = {{"input", {4}}}};
    ScriptModel({.path = path}).fit(section_with({{"path", path}}), samples);
  } catch (const OperatingError& error) {
    std::fprintf(stderr, "%s", error.what());
    _exit(error.kind() == EndKind::kInterrupted ? 4 : 3);
  }
  _exit(5);
}

TEST_F(RefusedScript, ATrialHearsARequestToStop) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string path =
      file(kLinear, "    return torch", "    _0 = True\n    while _0:\n      _0 = True\n    return torch");
  EXPECT_EXIT(try_endless(path), testing::ExitedWithCode(4), "stopped while a program was tried");
}

TEST_F(RefusedScript, TextsThatTheProgramRaisesAreShown) {
  EXPECT_THAT(error_of("ops.prim.RaiseException(\"two \033[2J dims\", \"builtins.ValueError\")"),
              HasSubstr(": ValueError: two \\x1b[2J dims"));
  EXPECT_THAT(error_of("ops.prim.RaiseException(\"" + std::string(1000, 'a') + "\")"),
              AllOf(HasSubstr(": aaa"), HasSubstr("..."), testing::Not(HasSubstr(std::string(100, 'a')))));
}

TEST_F(RefusedScript, DamagedCodeIsDescribedInPlainWords) {
  const std::string words = refusal_of_call("torch.linear(input, ");
  EXPECT_THAT(words, HasSubstr("is no whole file of torch.jit.save"));
  EXPECT_THAT(words, testing::Not(HasSubstr("HERE")));
  EXPECT_THAT(refusal_of_call("torch.linear(" + std::string(1000, '(')), HasSubstr("nested too deeply"));
  EXPECT_THAT(refusal("data.pkl", "q", "\x01"), HasSubstr("of its pickle"));
}

}  // namespace
}  // namespace tutti
