#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/tables/table_target.h"
#include "io/formats/mds_values.h"
#include "io/tokens/token_type.h"
#include "recipe/options.h"
#include "recipe/setting.h"
#include "tensors/ignored_target.h"

// The kinds of [data.train] and [data.eval]. Free of libtorch.
namespace tutti {

class Dataset;
using DatasetPtr = std::shared_ptr<const Dataset>;

// Arguments of a dataset besides its section.
struct DataEnvironment {
  uint64_t seed = 0;         // of the recipe, for synthetic data
  int64_t ignore_index = 0;  // a legal target, whatever num_classes is
  // Dataset::fitted of the training data, for evaluation data; nullopt: for the training data.
  std::optional<std::string> fitted = {};
  // Of tables: true for each row that is read. Null: all rows.
  const std::vector<bool>* rows = nullptr;
};

// Of kinds that read a command's output from a pipe.
struct StreamOptions {
  std::string command = "";   // "": files
  int64_t epoch_samples = 0;  // 0: as many as the command writes
  int64_t shuffle_buffer = 1000;
};

struct Hdf5Options {
  std::string path = "";
  std::string group = "/";
  std::optional<Setting> arrays = {};  // names, or a table with batches' names for the file's
  double cache_mb = 1024;
  int64_t num_classes = 0;  // 0: from the data

  static Kind<Hdf5Options> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

struct NumpyOptions {
  std::string path = "";
  std::optional<Setting> arrays = {};  // as of Hdf5Options
  int64_t num_classes = 0;             // 0: from the data

  static Kind<NumpyOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

enum class TokenSplit { kAll, kTrain, kEval };

struct SequenceOptions {
  std::string path = "";
  int64_t sequence_length = 256;
  TokenSplit split = TokenSplit::kAll;
  double eval_fraction = 0.1;  // the part of the tokens, at the file's end, for kEval
};

struct BytesOptions : SequenceOptions {
  static Kind<BytesOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

struct TokensOptions : SequenceOptions {
  std::optional<TokenFormat> dtype = {};  // of a file without a header; nullopt: by its look
  int64_t vocab_size = 0;                 // tokens are below; 0: the largest token + 1

  static Kind<TokensOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

enum class TextPackingKind { kCut, kFirstFit };

struct TextOptions : SequenceOptions, StreamOptions {
  std::string tokenizer = "";                // tokenizer.json, or a folder with it
  bool json_lines = true;                    // of a command; else each line is a text
  std::string text_field = "text";           // members of a line of JSON
  std::optional<Setting> prompt_field = {};  // a member, or several
  std::string response_field = "";
  std::string messages_field = "";
  std::string chosen_field = "", rejected_field = "";  // "": samples are no pairs
  std::string turn = "";  // "": as the tokenizer's chat template says, else as ChatML
  TextPackingKind packing = TextPackingKind::kCut;
  bool add_bos_token = false, add_eos_token = true;  // before and behind each document, but see kind()
  std::string bos_token = "", eos_token = "";        // "": as the tokenizer says
  bool skip_bad = false;                             // lines that are no such JSON are left out
  std::string cache = "";                            // the folder of tokens; "": default_token_folder()

  static Kind<TextOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

enum class SyntheticTargets { kClass, kSequence };

struct SyntheticOptions {
  int64_t samples = 4096;
  std::vector<int64_t> shape = {64};  // of a sample; for kSequence the length
  SyntheticTargets targets = SyntheticTargets::kClass;
  int64_t classes = 10;  // of kClass
  int64_t vocab = 256;   // of kSequence

  static Kind<SyntheticOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

struct Cifar10Options {
  std::string path = "";  // a file; or a folder with the archive's files, or with the archive's folder
  bool test = false;      // of a folder: the files to test on, not the files to train on

  static Kind<Cifar10Options> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

struct Cifar100Options : Cifar10Options {
  bool coarse = false;  // the 20 superclasses, not the 100 classes

  static Kind<Cifar100Options> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

struct MnistOptions {
  std::string path = "";
  bool test = false;

  static Kind<MnistOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

struct IdxOptions {
  std::string images = "";  // uint8 [samples, height, width] or [samples, height, width, channels]
  std::string labels = "";  // uint8 [samples]
  int64_t num_classes = 0;  // labels are below; 0: the largest label + 1
  int64_t ignore_index = kIgnoredTarget;  // a legal label, whatever num_classes is

  static Kind<IdxOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

enum class OnBadSample { kError, kSkip };

// How image files are read.
struct ImageReadOptions {
  OnBadSample on_bad_sample = OnBadSample::kError;
  int64_t max_image_pixels = 89'478'485;  // kMostPixelsOfAnImage (data/images/decoder.h)
  bool scaled_decoding = true;  // JPEGs are decoded at 1/2, 1/4 or 1/8 where a transform makes images smaller
};

// Of datasets whose samples are image files and their classes.
struct ImageFileOptions : ImageReadOptions {
  std::string path = "";
  std::vector<std::string> classes = {};  // the names, in the order of their numbers
  std::string classes_from = "";  // where the names are: a folder of class folders, or lines of a file
  int64_t num_classes = 0;        // 0: from the data
};

// How the pixels of masks are classes.
struct MaskOptions {
  std::vector<int64_t> mask_values = {};  // the pixels' value of each class; empty: the class itself
};

struct ImageFolderOptions : ImageFileOptions, MaskOptions {
  std::string list = "";   // lines of image and class; "": the folders of `path` are the classes
  std::string masks = "";  // the folder of masks, whose pixels are classes; "": images have classes

  static Kind<ImageFolderOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

struct WebDatasetOptions : ImageFileOptions, StreamOptions {
  std::string label_key = "label";  // of samples with a .json and no .cls

  static Kind<WebDatasetOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

struct MdsOptions : ImageFileOptions {
  std::string remote = "";  // "": all files are in `path`
  std::string fetch = "";   // a command line with {source} and {target}
  std::optional<double> cache_mb = {};
  std::optional<Setting> columns = {};       // names, or a table with batches' names for the columns'
  MdsNumber dtype = MdsNumber::kInt64;       // of what columns of bytes hold
  int64_t shuffle_block = int64_t{1} << 18;  // samples

  static Kind<MdsOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

// Of datasets whose targets are columns of a table. In an evaluation those of the training's.
struct TargetOptions {
  std::optional<Setting> target = {};  // a name, or a list
  TableTarget target_type = TableTarget::kAuto;
  std::vector<std::string> classes = {};
};

// Of tables. All keys but `path` default to the training data's in an evaluation.
struct TableOptions : TargetOptions, SeriesOptions {
  std::string path = "";
  std::vector<std::string> inputs = {};
  std::vector<std::string> one_hot = {};
  bool normalize = false;
  bool normalize_target = false;
  bool fills_missing = false;
};

// Of tables in text.
struct TextFileOptions {
  std::string delimiter = "";       // "": by the ending
  std::optional<bool> header = {};  // as CsvFile::Format
};

struct CsvOptions : TableOptions, TextFileOptions {
  static Kind<CsvOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

// A table of texts, in a file of any of the three forms.
struct TextTableOptions : TargetOptions, TextFileOptions {
  std::string path = "";
  std::string tokenizer = "";  // tokenizer.json, or a folder with it
  int64_t sequence_length = 128;
  std::string text = "text", text_pair = "", positive = "", negative = "";  // columns
  std::string array = "input_ids";

  static Kind<TextTableOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

// A table of pictures' files, in a file of any of the three forms.
struct ImageTableOptions : TargetOptions, TextFileOptions, ImageReadOptions, MaskOptions {
  std::string path = "";
  std::string image = "";  // the column of paths; "": the only one that names pictures
  std::string root = "";   // the folder that they are below; "": the table's
  std::string mask = "";   // the column of paths of masks; "": none
  bool normalize_target = false;
  int64_t num_classes = 0;  // of masks; 0: from the data

  static Kind<ImageTableOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

struct ParquetOptions : TableOptions {
  static Kind<ParquetOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

// The datasets of a mixture, each with the key "weight" or "tokens".
Catalog source_catalog();

using SourceKinds = Kinds<Hdf5Options, NumpyOptions, BytesOptions, TextOptions, TokensOptions,
                          SyntheticOptions, Cifar10Options, Cifar100Options, MnistOptions, IdxOptions,
                          ImageFolderOptions, WebDatasetOptions, MdsOptions>;

// A mixture of the others.
struct MixtureOptions {
  std::vector<Setting> sources = {};
  int64_t samples = 0;  // of an epoch, where sources have weights; 0: as many as all sources have

  static Kind<MixtureOptions> kind();
  DatasetPtr make(const Setting& section, const DataEnvironment& environment) const;
};

inline constexpr const char* kSplitKind = "split";

// A share of [data.train], which is not trained on; for [data.eval] alone (data/split/open_split.h).
struct SplitOptions {
  double split = 0;  // below 1: the share, else the number of samples
  int64_t split_seed = 0;
  std::string split_by = "";  // a column or an array; "": none

  static Kind<SplitOptions> kind();
};

// True for transforms of training that held-out samples have too: those that draw nothing, and mask_tokens.
bool suits_held_out(const Setting& transform);
// Those of a list; the list may be empty. `path`: the key's.
Setting held_out_transforms(const Setting& transforms, const std::string& path);

// How [data.train] draws samples with replacement (data/balance/sampler.h).
struct SamplerOptions {
  std::string sampler = "";                  // "": each sample once
  std::vector<double> sampler_weights = {};  // of each class
  std::string sampler_column = "";           // with a weight for each sample

  static Kind<SamplerOptions> kind();
};

using DataKinds =
    Kinds<Hdf5Options, NumpyOptions, BytesOptions, TextOptions, TokensOptions, SyntheticOptions,
          Cifar10Options, Cifar100Options, MnistOptions, IdxOptions, ImageFolderOptions, WebDatasetOptions,
          MdsOptions, CsvOptions, ParquetOptions, TextTableOptions, ImageTableOptions, MixtureOptions>;

}  // namespace tutti
