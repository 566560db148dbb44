import { existsSync, readFileSync } from 'node:fs';
import type { JsonObject } from '../../src/base/json.ts';
import { parseSource } from '../../src/codec/source.ts';
import { CONFIG_ERRORS } from '../../src/dynamic/error-texts.ts';
import type { KubeletReader } from '../../src/kubelet/catalogue/catalogue.ts';
import { syntaxOf } from '../../src/kubelet/documents/decode.ts';
import { resolveRelativePaths } from '../../src/kubelet/effective/running-config.ts';
import { validateKubeletConfiguration } from '../../src/kubelet/validate/validate.ts';

/** A valid configuration, or the kubelet's reported reason and log line for an invalid one. */
export type LoadedPayload =
  | { readonly config: JsonObject; readonly written: JsonObject }
  | { readonly config: null; readonly error: string; readonly why: string };

/**
 * Loads a file as a kubelet of a minor version does: reads, decodes leniently, resolves relative paths, sets
 * defaults, validates.
 */
export function loadPayload(file: string, { minor, catalogue }: KubeletReader): LoadedPayload {
  const failed = (why: string): LoadedPayload => ({ config: null, error: CONFIG_ERRORS.LOAD_FAILED.text, why });
  if (!existsSync(file)) return failed(`failed to read kubelet config file "${file}", error: open ${file}: no such file or directory`);
  const text = readFileSync(file, 'utf8');
  if (text === '') return failed(`kubelet config file "${file}" was empty`);
  const { documents, problems } = parseSource(text, file);
  const document = documents[0];
  if (problems.length > 0 || document === undefined) return failed(`failed to decode: ${problems[0]?.message ?? 'no document'}`);
  const verdict = validateKubeletConfiguration(document, { minor, catalogue, lenient: true, syntax: syntaxOf(text) });
  const undecodable = verdict.decoded.problems.find(({ severity }) => severity !== 'warning');
  if (undecodable !== undefined) return failed(`failed to decode: ${undecodable.path ?? ''} ${undecodable.message}`);
  const refused = verdict.problems.find(({ severity }) => severity !== 'warning');
  if (refused !== undefined)
    return {
      config: null,
      error: CONFIG_ERRORS.VALIDATION_FAILED.text,
      why: `invalid configuration: ${refused.path ?? ''} ${refused.message}`,
    };
  return { config: resolveRelativePaths(verdict.effective, file, minor), written: verdict.decoded.value };
}
