import type * as z from 'zod';
import type { Problem } from '../../base/errors.ts';
import { type DocumentGrammar, readDocument } from '../../codec/read-document.ts';
import type { SourceDocument } from '../../codec/source.ts';
import { type ConvertedModel, V1BETA3_CONVERSIONS } from './convert-v1beta3.ts';
import { MODEL_MEMBERS, type ModelKind } from './model.ts';
import { modelPath, type Origin, type Origins } from './origins.ts';
import { V1BETA3_SCHEMAS } from './schema-v1beta3.ts';
import { V1BETA4_SCHEMAS } from './schema-v1beta4.ts';
import { type SchemaVersion, suggestField } from './suggest-field.ts';

/** The content of one document of a file. */
export interface ModelPart {
  readonly kind: ModelKind;
  readonly version: SchemaVersion;
  readonly models: ConvertedModel;
  readonly problems: readonly Problem[];
  /** By kind and model path. */
  readonly origins: Origins;
}

/** Reads one document of kubeadm.k8s.io into the model; converts v1beta3. */
export function readModel(document: SourceDocument, kind: ModelKind, version: SchemaVersion): ModelPart {
  const oldKind = version === 'v1beta3' && kind in V1BETA3_SCHEMAS ? (kind as keyof typeof V1BETA3_SCHEMAS) : null;
  const schema: z.ZodType<object> = oldKind === null ? V1BETA4_SCHEMAS[kind] : V1BETA3_SCHEMAS[oldKind];
  const { value, problems, origins } = readDocument(document, schema, grammarOf(kind, version));
  const moved = new Map<string, string>();
  const convert = oldKind && (V1BETA3_CONVERSIONS[oldKind] as (written: object, paths: typeof moved) => ConvertedModel);
  const models = convert === null ? { [MODEL_MEMBERS[kind]]: value } : convert(value, moved);
  return { kind, version, models, problems, origins: inModel(kind, document, origins, moved) };
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
