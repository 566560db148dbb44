import type * as z from 'zod';
import type { Problem } from '../../base/errors.ts';
import { type DocumentGrammar, readDocument } from '../../codec/read-document.ts';
import type { SourceDocument } from '../../codec/source.ts';
import { type Converted, convertV1beta3Cluster, convertV1beta3Init, convertV1beta3Join } from './convert-v1beta3.ts';
import type { DurationText, ModelKind, ModelSet } from './model.ts';
import { modelPath, type Origin, type Origins } from './origins.ts';
import { V1BETA3_SCHEMAS } from './schema-v1beta3.ts';
import { V1BETA4_SCHEMAS } from './schema-v1beta4.ts';
import { type SchemaVersion, suggestField } from './suggest-field.ts';

/** The content of one document of a file. */
export interface ModelPart {
  readonly kind: ModelKind;
  readonly version: SchemaVersion;
  readonly models: ModelSet;
  readonly problems: readonly Problem[];
  /** By kind and model path. */
  readonly origins: Origins;
  /** `apiServer.timeoutForControlPlane` of v1beta3, which belongs to another kind now. */
  readonly timeoutForControlPlane?: DurationText;
}

/** Reads one document of kubeadm.k8s.io into the model; converts v1beta3. */
export function readModel(document: SourceDocument, kind: ModelKind, version: SchemaVersion): ModelPart {
  const read = <T, M>(schema: z.ZodType<T>, convert: (written: T) => Converted<M>) => {
    const { value, problems, origins } = readDocument(document, schema, grammarOf(kind, version));
    const { value: model, moved, timeoutForControlPlane } = convert(value);
    const part = { kind, version, problems, origins: inModel(kind, document, origins, moved) };
    return { model, part: { ...part, ...(timeoutForControlPlane !== undefined && { timeoutForControlPlane }) } };
  };
  const old = version === 'v1beta3';
  switch (kind) {
    case 'InitConfiguration': {
      const { model, part } = old ? read(V1BETA3_SCHEMAS[kind], convertV1beta3Init) : read(V1BETA4_SCHEMAS[kind], asIs);
      return { ...part, models: { init: model } };
    }
    case 'ClusterConfiguration': {
      const { model, part } = old ? read(V1BETA3_SCHEMAS[kind], convertV1beta3Cluster) : read(V1BETA4_SCHEMAS[kind], asIs);
      return { ...part, models: { cluster: model } };
    }
    case 'JoinConfiguration': {
      const { model, part } = old ? read(V1BETA3_SCHEMAS[kind], convertV1beta3Join) : read(V1BETA4_SCHEMAS[kind], asIs);
      return { ...part, models: { join: model } };
    }
    case 'ResetConfiguration': {
      const { model, part } = read(V1BETA4_SCHEMAS[kind], asIs);
      return { ...part, models: { reset: model } };
    }
    case 'UpgradeConfiguration': {
      const { model, part } = read(V1BETA4_SCHEMAS[kind], asIs);
      return { ...part, models: { upgrade: model } };
    }
  }
}

const NOTHING_MOVED: ReadonlyMap<string, string> = new Map();

function asIs<T>(value: T): Converted<T> {
  return { value, moved: NOTHING_MOVED };
}

/** Origins by model path; a moved member is also found under its new path. */
function inModel(
  kind: ModelKind,
  document: SourceDocument,
  written: ReadonlyMap<string, Origin>,
  moved: ReadonlyMap<string, string>,
): Origins {
  const origins = new Map<string, Origin>([[kind, { position: document.positionAt(document.root?.offset ?? 0), path: '' }]]);
  for (const [path, origin] of written) origins.set(modelPath(kind, path), origin);
  for (const [path, from] of moved) {
    const origin = written.get(from);
    if (origin) origins.set(modelPath(kind, path), origin);
  }
  return origins;
}

function grammarOf(kind: ModelKind, version: SchemaVersion): DocumentGrammar {
  const suggest = (parents: readonly string[], name: string) => suggestField({ kind, version, parents, name });
  if (version !== 'v1beta4') return { suggest };
  return { suggest, argumentHint: (name) => `Write a list of names and values (v1beta4): - {name: ${name}, value: …}` };
}
