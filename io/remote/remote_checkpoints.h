#pragma once

#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "io/remote/remote_store.h"
#include "runtime/log.h"

namespace tutti {

inline constexpr const char* kManifestFile = "manifest.json";

// Names of the checkpoints in a remote folder that have a manifest, in the order of trial: the checkpoint
// that the file `latest` names first, then the newest first. "" = the folder is a checkpoint.
std::vector<std::string> remote_checkpoints(const RemoteStore& store, const CheckpointSet& set);

// Writes the file `latest` of the remote folder, which has the name of the newest checkpoint.
void name_latest(const RemoteStore& store, const std::string& latest, const std::string& name);

// Fetches the checkpoint to `folder`, which gets its name once all files are there and have the sizes and
// hashes of the manifest. Throws OperatingError.
void fetch_checkpoint(const RemoteStore& store, const std::string& name, const std::string& folder);

}  // namespace tutti
