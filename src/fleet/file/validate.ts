import type { Problem } from '../../base/errors.ts';
import type { SourceDocument, SourceEntry, SourceMap } from '../../codec/source.ts';
import {
  type Catalogue,
  type KubeletReader,
  type Minor,
  NEWEST_MINOR,
  OLDEST_MINOR,
  parseMinor,
} from '../../kubelet/catalogue/catalogue.ts';
import { decodeKubeletConfiguration } from '../../kubelet/documents/decode.ts';
import { unknownFlag, wrongArgument } from '../../kubelet/flags/check-extra-args.ts';
import { validateKubeletConfiguration } from '../../kubelet/validate/validate.ts';
import type { FleetOverlay, ResolvedFleet, ResolvedHost } from './model.ts';

/**
 * Validates each distinct configuration of a fleet as a kubelet of a minor would: first the layers
 * individually, then the merged result.
 * @returns each problem once, with the affected hosts if not all; and the number of distinct configurations
 */
export function validateFleet({ hosts }: ResolvedFleet, { minor, catalogue }: KubeletReader) {
  const found = new Map<string, { readonly problem: Problem; readonly hosts: string[] }>();
  const add = (problem: Problem, names: readonly string[]): void => {
    const { position, code, path, message } = problem;
    const key = [position?.file, position?.line, position?.column, code, path, message].join('\0');
    const known = found.get(key);
    if (known) known.hosts.push(...names);
    else found.set(key, { problem, hosts: [...names] });
  };
  const groups = groupByConfiguration(hosts);
  for (const same of groups) {
    const names = same.map(({ name }) => name);
    const [{ overlays }] = same;
    const written = overlays.flatMap(({ document }) => decodeKubeletConfiguration(document, { minor, catalogue }).problems);
    const merged = mergeOverlays(overlays);
    const validated = merged === null ? [] : validateKubeletConfiguration(merged, { minor, catalogue }).problems;
    const flags = flagProblems(same[0], minor, catalogue);
    const unique = new Map([...written, ...validated].map((problem) => [JSON.stringify(problem), problem]));
    for (const problem of [...[...unique.values()].map(inFleet), ...flags]) add(problem, names);
  }
  const problems = [...found.values()].map(({ problem, hosts: names }) =>
    names.length === hosts.length
      ? problem
      : { ...problem, host: `${names[0]}${names.length > 1 ? ` (and ${names.length - 1} more)` : ''}` },
  );
  return { problems: problems.sort(byPosition), configurations: groups.length };
}

/**
 * Validates the values of all hosts before any host is contacted. The version of a host is that of its packages,
 * otherwise `kubernetesVersion`. Without a version, a value is an error if no supported version accepts it.
 * @returns the errors at the version of each host; the hosts may refuse further values
 */
export function validateValues(fleet: ResolvedFleet, catalogue: Catalogue): readonly Problem[] {
  const byMinor = new Map<Minor | null, ResolvedHost[]>();
  for (const host of fleet.hosts) {
    const minor = minorOfHost(host, fleet);
    byMinor.set(minor, [...(byMinor.get(minor) ?? []), host]);
  }
  return [...byMinor].flatMap(([minor, hosts]) => {
    const errorsAt = (at: Minor): readonly Problem[] =>
      validateFleet({ ...fleet, hosts }, { minor: at, catalogue }).problems.filter(({ severity }) => severity !== 'warning');
    if (minor !== null) return errorsAt(minor);
    const errors = errorsAt(NEWEST_MINOR).filter(isIn(errorsAt(OLDEST_MINOR)));
    if (errors.length === 0) return [];
    // A feature gate may exist only between the two.
    const between = Array.from({ length: NEWEST_MINOR - OLDEST_MINOR - 1 }, (_, i) => errorsAt(OLDEST_MINOR + 1 + i));
    return errors.filter((problem) => between.every((others) => isIn(others)(problem)));
  });
}

function minorOfHost({ preparation }: ResolvedHost, { kubernetesVersion }: ResolvedFleet): Minor | null {
  const install = preparation?.install;
  const version = install?.kind === 'packages' ? install.version : kubernetesVersion;
  return version === null ? null : parseMinor(version);
}

/** Whether the list has a problem of the same place. */
function isIn(problems: readonly Problem[]): (problem: Problem) => boolean {
  const placeOf = ({ path, position }: Problem): string => JSON.stringify([path, position?.line, position?.column]);
  const places = new Set(problems.map(placeOf));
  return (problem) => places.has(placeOf(problem));
}

function groupByConfiguration(hosts: readonly ResolvedHost[]): readonly (readonly [ResolvedHost, ...ResolvedHost[]])[] {
  const ids = new Map<SourceDocument, number>();
  const idOf = (document: SourceDocument): number => {
    const id = ids.get(document) ?? ids.size;
    ids.set(document, id);
    return id;
  };
  const groups = new Map<string, [ResolvedHost, ...ResolvedHost[]]>();
  for (const host of hosts) {
    // Only the names matter: values differ between hosts.
    const flags = (host.nodeRegistration.kubeletExtraArgs ?? []).map(({ name }) => name);
    const key = JSON.stringify([host.overlays.map(({ document }) => idOf(document)), flags]);
    const same = groups.get(key);
    if (same) same.push(host);
    else groups.set(key, [host]);
  }
  return [...groups.values()];
}

/** The layers as one document; null without layers. Each member keeps its position. */
function mergeOverlays(overlays: readonly FleetOverlay[]): SourceDocument | null {
  const [first, ...others] = overlays.map(({ document }) => document);
  if (first === undefined) return null;
  const root = others.reduce((merged, { root: next }) => mergeMaps(merged, next as SourceMap), first.root as SourceMap);
  return { file: first.file, index: first.index, root, positionAt: (offset) => first.positionAt(offset) };
}

/** Members of both are merged if both are objects, otherwise replaced. */
function mergeMaps(base: SourceMap, overlay: SourceMap): SourceMap {
  const over = new Map(overlay.entries.map((entry) => [entry.key, entry]));
  const known = new Set(base.entries.map(({ key }) => key));
  const kept = [...new Map(base.entries.map((entry) => [entry.key, entry])).values()].map((entry): SourceEntry => {
    const { value: under } = entry;
    const next = over.get(entry.key);
    if (next === undefined || (next.value.kind === 'scalar' && next.value.scalar.type === 'null')) return entry;
    return under.kind === 'map' && next.value.kind === 'map' ? { ...next, value: mergeMaps(under, next.value) } : next;
  });
  return { ...overlay, entries: [...kept, ...[...over.values()].filter(({ key }) => !known.has(key))] };
}

function flagProblems(host: ResolvedHost, minor: Minor, catalogue: Catalogue): readonly Problem[] {
  const wrong = (host.nodeRegistration.kubeletExtraArgs ?? []).flatMap(
    (arg) => unknownFlag(arg, minor, catalogue) ?? wrongArgument(arg, minor, catalogue) ?? [],
  );
  if (wrong.length === 0) return [];
  const position = host.origins().get('kubeletExtraArgs')?.position ?? host.position;
  return wrong.map((problem) => ({ ...problem, position }));
}

function inFleet(problem: Problem): Problem {
  const { path = '' } = problem;
  return { ...problem, path: path === '' ? 'kubeletConfiguration' : `kubeletConfiguration.${path}` };
}

function byPosition(a: Problem, b: Problem): number {
  return (a.position?.line ?? 0) - (b.position?.line ?? 0) || (a.position?.column ?? 0) - (b.position?.column ?? 0);
}
