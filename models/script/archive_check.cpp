#include "models/script/archive_check.h"

#include <c10/core/ScalarType.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/frontend/parser.h>
#include <torch/csrc/jit/frontend/tree_views.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "io/weights/pickle.h"
#include "models/torch/known_operators.h"
#include "runtime/error.h"

namespace tutti::script {
namespace {

namespace jit = torch::jit;

constexpr uint64_t kMostTextBytes = uint64_t{256} << 20;
constexpr std::size_t kMostDepth = 500;  // of brackets and blocks, since readers of code are recursive
constexpr std::string_view kLibtorchsClasses = "__torch__.torch.classes", kFilesClasses = "__torch__.";

// -- Objects.

bool is_class_of_file(const std::string& global) {
  return global.starts_with(kFilesClasses) && !global.starts_with(kLibtorchsClasses);
}

bool wraps_a_value(const std::string& global) {
  constexpr std::array kKnown{"build_intlist", "build_doublelist", "build_boollist", "build_tensorlist",
                              "restore_type_tag"};
  return std::ranges::any_of(
      kKnown, [&](const char* one) { return global == std::string("torch.jit._pickle.") + one; });
}

bool is_of_script(const std::string& global) {
  return is_class_of_file(global) || wraps_a_value(global) || global == "builtins.complex" ||
         kObjectsOfStateDicts.has(global);
}

PickledValue called_by_script(const std::string& global, const std::vector<PickledValue*>& arguments) {
  if (is_class_of_file(global)) return {PickledDict()};
  if (global == "builtins.complex") return {};
  if (!wraps_a_value(global)) return kObjectsOfStateDicts.called(global, arguments);
  if (arguments.empty()) throw std::invalid_argument("expected a value");
  return *arguments.front();
}

constexpr PickledObjects kObjectsOfScripts{is_of_script, called_by_script, "which no script needs"};

// -- Code.

std::string dotted(const jit::TreeRef& tree) {
  if (tree->kind() == jit::TK_VAR) return jit::Var(tree).name().name();
  if (tree->kind() != '.') return "";
  const jit::Select select(tree);
  const std::string before = dotted(select.value().tree());
  return before.empty() ? "" : before + "." + select.selector().name();
}

bool is_plain_type(const c10::TypePtr& type) {
  using enum c10::TypeKind;
  if (const auto optional = type->cast<c10::OptionalType>()) return is_plain_type(optional->getElementType());
  constexpr std::array kPlain{IntType,    FloatType,  ComplexType,  BoolType,
                              NumberType, StringType, DeviceObjType};
  return std::ranges::find(kPlain, type->kind()) != kPlain.end();
}

// True for an operator that libtorch may call as it reads the code: all arguments may be constants.
bool may_run_early(const std::string& name) {
  return std::ranges::any_of(jit::getAllOperatorsFor(c10::Symbol::fromQualString(name)), [](const auto& one) {
    return std::ranges::all_of(one->schema().arguments(),
                               [](const c10::Argument& given) { return is_plain_type(given.real_type()); });
  });
}

class Code {
 public:
  explicit Code(std::string record) : record_(std::move(record)) {}

  // A source file as libtorch's importer reads it.
  void look_at(const std::shared_ptr<jit::Source>& source) {
    jit::Parser parser(source);
    jit::Lexer& lexer = parser.lexer();
    if (lexer.cur().kind == jit::TK_IDENT && lexer.cur().text() == "op_version_set") skip_line(lexer);
    for (;;) {
      while (lexer.cur().kind == jit::TK_IMPORT) skip_line(lexer);
      if (lexer.cur().kind == jit::TK_EOF) return;
      if (lexer.cur().kind == jit::TK_CLASS_DEF)
        look_at_class(jit::ClassDef(parser.parseClass()));
      else
        look_at(parser.parseFunction(/*is_method=*/false));
    }
  }

 private:
  static void skip_line(jit::Lexer& lexer) {
    while (lexer.cur().kind != jit::TK_NEWLINE && lexer.cur().kind != jit::TK_EOF) lexer.next();
    lexer.nextIf(jit::TK_NEWLINE);
  }

  std::string at(const std::string& what, const jit::TreeRef& tree) const {
    const auto line = tree->range().file_line_col();
    return "'" + what + "' (" + record_ + (line ? ":" + std::to_string(std::get<1>(*line)) : "") + ")";
  }

  void look_at_class(const jit::ClassDef& type) const {
    for (const jit::Stmt& one : type.body()) {
      if (one.kind() != jit::TK_DEF)
        require_no_call(one.tree(), "a constant of a class");
      else if (jit::Def(one.tree()).name().name() == "__setstate__")
        throw UserError(at("__setstate__", one.tree()) +
                        " is code that runs when the file is loaded; tutti loads no file that has such code");
      look_at(one.tree());
    }
  }

  // Defaults of arguments are computed when the file is loaded; devices are written as calls.
  void require_no_call(const jit::TreeRef& tree, const char* where) const {
    if (tree->kind() == jit::TK_APPLY && dotted(jit::Apply(tree).callee().tree()) != "torch.device")
      throw UserError(at(where, tree) + " is computed by a call, which runs when the file is loaded");
    for (const jit::TreeRef& one : tree->trees()) require_no_call(one, where);
  }

  void look_at(const jit::TreeRef& tree) const {
    if (tree->kind() == jit::TK_PARAM) require_no_call(tree, "the default of an argument");
    if (tree->kind() == '.') look_at_name(tree);
    for (const jit::TreeRef& one : tree->trees()) look_at(one);
  }

  // `torch.NAME`, `ops.SPACE.NAME`, or a value's method: operators beside those that the file defines.
  void look_at_name(const jit::TreeRef& tree) const {
    const std::string name = dotted(tree), own = jit::Select(tree).selector().name();
    if (name.starts_with(kLibtorchsClasses))
      throw UserError(at(name, tree) + " is refused: it is a class of libtorch's, and none of the file's");
    std::string op = "aten::" + own;
    if (name.starts_with("ops.") && std::ranges::count(name, '.') == 2)
      op = name.substr(4, name.size() - 5 - own.size()) + "::" + own;
    if (!is_known_operator(op) && may_run_early(op)) refuse_operator(at(op, tree));
  }

  std::string record_;
};

class Check {
 public:
  explicit Check(const std::string& path)
      : path_(path), bytes_(std::filesystem::file_size(path)), reader_(path) {}

  void run() {
    if (reader_.hasRecord("model.json"))
      throw UserError(
          "it is in the format of PyTorch before 1.2; load it in PyTorch and torch.jit.save it again");
    for (const std::string& record : reader_.getAllRecords())
      if (record.starts_with("code/") && record.ends_with(".py")) look_at_code(record);
    for (const std::string archive : {"constants", "data"}) look_at_objects(archive);
  }

 private:
  std::string text(const std::string& record) {
    if (reader_.getRecordSize(record) > kMostTextBytes)
      throw UserError("its record '" + record + "' is too large");
    const auto [data, size] = reader_.getRecord(record);
    return {static_cast<const char*>(data.get()), size};
  }

  void look_at_code(const std::string& record) {
    const std::string code = text(record);
    require_shallow(code, record);
    Code(record).look_at(std::make_shared<jit::Source>(code, record, 1));
  }

  static void require_shallow(const std::string& code, const std::string& record) {
    std::size_t depth = 0;
    for (const char one : code) {
      if (one == '(' || one == '[' || one == '{') ++depth;
      if ((one == ')' || one == ']' || one == '}') && depth > 0) --depth;
      if (depth > kMostDepth) throw UserError("its code '" + record + "' has brackets nested too deeply");
    }
  }

  void look_at_objects(const std::string& archive) {
    const std::string bytes = text(archive + ".pkl");
    const Pickle pickle(std::as_bytes(std::span(bytes)), path_, kObjectsOfScripts);
    for (const PickledValue& one : pickle.values())
      if (const auto* storage = std::get_if<PickledStorage>(&one.value)) require_stored(archive, *storage);
  }

  void require_stored(const std::string& archive, const PickledStorage& storage) {
    if (storage.numbers == 0) return;
    const std::string record = archive + "/" + storage.key;
    const uint64_t expected = static_cast<uint64_t>(storage.numbers) * c10::elementSize(storage.dtype),
                   found = reader_.hasRecord(record) ? reader_.getRecordSize(record) : 0;
    if (found > bytes_) throw UserError("its record '" + record + "' is too large");
    if (found < expected)
      throw UserError("its record '" + record + "' has " + std::to_string(found) + " bytes, " +
                      std::to_string(expected) + " are expected");
  }

  const std::string& path_;
  uint64_t bytes_;  // of the file; libtorch compresses no numbers
  caffe2::serialize::PyTorchStreamReader reader_;
};

}  // namespace

void require_plain_archive(const std::string& path) { Check(path).run(); }

}  // namespace tutti::script
