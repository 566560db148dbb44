import type { ProxySetting, SecretSource } from '../host/install/model.ts';
import { inlineSecret, invalidFleetValue } from './fleet-problems.ts';
import type { Layer } from './layer.ts';
import type { ProblemCollector, SettingLocation } from './problem-collector.ts';
import type { FleetLayer } from './schema.ts';
import type { Scope } from './scope.ts';
import { secretSource } from './secret-source.ts';

interface Context {
  readonly scope: Scope;
  readonly findings: ProblemCollector;
}

/** Characters of addresses, subnets, domains and ports. */
const EXCEPTION = /^[\w.:*/[\]-]+$/;

/**
 * Merges the proxies of the layers by member: the last layer that has a member wins.
 * @param layers lowest first
 * @returns undefined: not declared; `none`: declared to have no proxy
 */
export function hostProxy(layers: readonly Layer[], context: Context): ProxySetting | undefined {
  const last = layers.findLast(({ written }) => written.proxy !== undefined);
  if (last === undefined) return undefined;
  const [http, https] = [proxyUrl('http', layers, context), proxyUrl('https', layers, context)];
  if (http === undefined && https === undefined) {
    const problem = invalidFleetValue('proxy has neither http nor https', 'Set the URL of a proxy, or https: none to remove the proxy');
    context.findings.addShared('proxy', last.place(['proxy']), () => problem);
  }
  const proxy = { http: urlOrNull(http), https: urlOrNull(https) };
  if (proxy.http === null && proxy.https === null) return 'none';
  return { ...proxy, noProxy: exceptions(layers, context), credentials: credentials(layers, context) };
}

function urlOrNull(text: string | undefined): string | null {
  return text === undefined || text === 'none' ? null : text;
}

type ProxyMember = keyof NonNullable<FleetLayer['proxy']>;

/** The value of a member in the last layer that has it. */
function lastOf<K extends ProxyMember>(
  member: K,
  layers: readonly Layer[],
): {
  readonly value: NonNullable<NonNullable<FleetLayer['proxy']>[K]>;
  readonly place: (...steps: readonly number[]) => SettingLocation;
} | null {
  const layer = layers.findLast(({ written }) => written.proxy?.[member] !== undefined);
  if (layer === undefined) return null;
  const value = layer.written.proxy?.[member] as NonNullable<NonNullable<FleetLayer['proxy']>[K]>;
  return { value, place: (...steps) => layer.place(['proxy', member, ...steps]) };
}

function proxyUrl(member: 'http' | 'https', layers: readonly Layer[], { scope, findings }: Context): string | undefined {
  const found = lastOf(member, layers);
  if (found === null) return undefined;
  const place = found.place();
  const text = scope.text(found.value, () => place) ?? 'none';
  if (text === 'none') return text;
  const url = URL.canParse(text) ? new URL(text) : null;
  // The value is in no message: it may contain a password.
  if (text.includes('@'))
    findings.addShared('proxy credentials', place, () =>
      inlineSecret('a proxy URL with a user or a password', 'Set proxy.credentials to {env: NAME} or {file: PATH}'),
    );
  else if (url === null || !/^(?:https?|socks5h?):$/.test(url.protocol) || url.hostname === '' || /["'\\\s\p{Cc}]/u.test(text))
    findings.addShared('proxy url', place, () => invalidFleetValue('not the URL of a proxy', 'Use the form http://proxy.example.com:3128'));
  return text;
}

function exceptions(layers: readonly Layer[], { scope, findings }: Context): readonly string[] {
  const found = lastOf('noProxy', layers);
  return (found?.value ?? []).map((written, i) => {
    const place = (found as NonNullable<typeof found>).place(i);
    const text = scope.text(written, () => place) ?? '';
    if (!EXCEPTION.test(text)) {
      const problem = invalidFleetValue(
        `${JSON.stringify(text)} is not an address, a subnet or a domain`,
        'Write one of them per item, such as .example.com',
      );
      findings.addShared(`noProxy ${text}`, place, () => problem);
    }
    return text;
  });
}

function credentials(layers: readonly Layer[], { findings }: Context): SecretSource | null {
  const found = lastOf('credentials', layers);
  if (found === null) return null;
  return secretSource('credentials', found.value, (problem) => findings.addShared('proxy source', found.place(), () => problem));
}
