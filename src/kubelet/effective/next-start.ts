import { isAppError, type Problem } from '../../base/errors.ts';
import { documentOfValue } from '../../codec/document-of-value.ts';
import { withBigIntegers } from '../../codec/yaml-encode.ts';
import { type Catalogue, type KubeletReader, parseMinor } from '../catalogue/catalogue.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from '../documents/decode.ts';
import { unknownFlag } from '../flags/check-extra-args.ts';
import { parseCommandLine } from '../flags/command-line.ts';
import { type LayeredConfig, leafPath } from '../layers/layers.ts';
import { validateKubeletConfiguration } from '../validate/validate.ts';
import { configInputOf, type KubeletSetup } from './kubelet-setup.ts';
import { type ConfigDrift, findDrift } from './node-explanation.ts';
import type { ObservedSetups } from './observe-kubelet.ts';
import { layerRunningConfig } from './running-config.ts';

/**
 * Compares a running kubelet with its next start by the files of its host, and finds what would make that start fail.
 * @returns `changes`: empty if no kubelet runs; `failures`: known reasons, as sentences without a full stop
 */
export function assessNextStart(
  observed: ObservedSetups,
  catalogue: Catalogue,
): { readonly changes: readonly ConfigDrift[]; readonly failures: readonly string[] } {
  const { kubelet, setup, next, unit, flags, diskFlags, diskVersion, unitFiles } = observed;
  const failures = startFailures(observed, catalogue);
  if (kubelet === null) return { changes: [], failures };
  const read = [...setup.files, ...(next?.files ?? [])].map(({ path, file }) => ({ path, modifiedAt: file?.modifiedAt ?? null }));
  const newer = new Map([...read, ...unitFiles].map(({ path, modifiedAt }) => [path, modifiedAt]));
  return {
    changes: findDrift({
      flags,
      diskFlags,
      files: [...newer].map(([path, modifiedAt]) => ({ path, modifiedAt })),
      unit,
      runningVersion: kubelet.version,
      diskVersion,
      startsNext: failures.length === 0,
    }),
    failures,
  };
}

function startFailures({ next, diskVersion, minor: running }: ObservedSetups, catalogue: Catalogue): readonly string[] {
  if (next === null) return [];
  const minor = (diskVersion === null ? null : parseMinor(diskVersion)) ?? running;
  const program = next.words[0]?.word ?? 'the kubelet';
  const missing = next.missing.map((path) => `${path} does not exist or cannot be read${namedBy(next, path)}`);
  return [
    ...(diskVersion === null ? [`${program} is missing, or does not print its version`] : []),
    ...flagFailures(next, { catalogue, minor }),
    ...missing,
    ...(missing.length > 0 ? [] : configFailures(next, { catalogue, minor })),
  ];
}

function namedBy({ flags }: KubeletSetup, path: string): string {
  const flag = flags.findLast(({ name, value }) => name === 'config' && value === path);
  return flag === undefined ? '' : ` (--config, ${flag.source})`;
}

/** A kubelet exits with flags that it does not know, and with words that are no flags. */
function flagFailures({ flags, words }: KubeletSetup, reader: KubeletReader): readonly string[] {
  const { others } = parseCommandLine(
    words.slice(1).map(({ word }) => word),
    reader,
  );
  const unknown = flags.flatMap((flag) => {
    const problem = unknownFlag(flag, reader.minor, reader.catalogue);
    return problem === null ? [] : [`--${flag.name} (${flag.source}): ${textOf(problem)}`];
  });
  return [...unknown, ...others.map((word) => `the command line has the word ${word}, which is no flag`)];
}

/** @see kubernetes/kubernetes cmd/kubelet/app/server.go NewKubeletCommand: decoding, flags, ValidateKubeletConfiguration (1.36) */
function configFailures(next: KubeletSetup, { catalogue, minor }: KubeletReader): readonly string[] {
  try {
    const { layered, problems } = layerRunningConfig(configInputOf(next, { catalogue, minor }));
    const config = { apiVersion: KUBELET_API_VERSION, kind: KUBELET_KIND, ...layered.config };
    const document = documentOfValue(withBigIntegers(config, catalogue.configurationType(minor)), 'config');
    const invalid = validateKubeletConfiguration(document, { minor, catalogue, lenient: true }).problems;
    return [
      ...problems.filter(({ code }) => code === 'KUBELET_FLAG_INVALID').map(textOf),
      ...invalid.filter(({ severity }) => severity !== 'warning').map((problem) => `${originOf(problem, layered)}${textOf(problem)}`),
    ];
  } catch (error) {
    if (!isAppError(error)) throw error;
    return error.problems.map((problem) => `${placeOf(problem)}${textOf(problem)}`);
  }
}

/** `/etc/kubernetes/own.yaml:7 `; empty: unknown. */
function originOf({ path }: Problem, { history }: LayeredConfig): string {
  const origin = path === undefined ? undefined : history.get(leafPath(path))?.at(-1)?.origin;
  return origin === undefined ? '' : `${origin.source} `;
}

function placeOf({ position }: Problem): string {
  return position === undefined ? '' : `${position.file}:${position.line}:${position.column} `;
}

function textOf({ path, message, hint, code }: Problem): string {
  const named = path === undefined || code === 'KUBELET_FLAG_UNKNOWN' ? message : `${path}: ${message}`;
  return hint === undefined ? named : `${named}. ${hint}`;
}
