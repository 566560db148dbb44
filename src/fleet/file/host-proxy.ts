import type { ProxySetting } from '../../host/operation/install-model.ts';
import { inlineSecret, invalidFleetValue } from './fleet-problems.ts';
import type { MergedHost } from './merge-layers.ts';
import { isTemplate } from './scope.ts';
import { secretSource } from './secret-source.ts';

/** Characters of addresses, subnets, domains and ports. */
const EXCEPTION = /^[\w.:*/[\]-]+$/;

/**
 * Resolves the proxy of a host.
 * @returns undefined: not declared; `none`: declared to have no proxy
 */
export function hostProxy({ setting, layerOf, place, report }: MergedHost): ProxySetting | undefined {
  const proxy = setting('proxy');
  if (proxy === undefined) return undefined;
  if (layerOf('proxy', 'http') === null && layerOf('proxy', 'https') === null)
    report(
      invalidFleetValue('proxy has neither http nor https', 'Set the URL of a proxy, or https: none to remove the proxy'),
      place('proxy'),
    );
  const urlOf = (member: 'http' | 'https'): string | null => {
    const url = proxy[member] ?? 'none';
    if (url === 'none') return null;
    // The value is in no message: it may contain a password.
    if (url.includes('@'))
      report(
        inlineSecret('a proxy URL with a user or a password', 'Set proxy.credentials to {env: NAME} or {file: PATH}'),
        place('proxy', member),
      );
    else if (!isProxyUrl(url))
      report(invalidFleetValue('not the URL of a proxy', 'Use the form http://proxy.example.com:3128'), place('proxy', member));
    return url;
  };
  const [http, https] = [urlOf('http'), urlOf('https')];
  const { noProxy = [], credentials } = proxy;
  for (const [i, exception] of noProxy.entries())
    if (!EXCEPTION.test(exception) && !isTemplate(exception)) {
      const message = `${JSON.stringify(exception)} is not an address, a subnet or a domain`;
      report(invalidFleetValue(message, 'Write one of them per item, such as .example.com'), place('proxy', 'noProxy', i));
    }
  const source =
    credentials === undefined
      ? null
      : secretSource('credentials', credentials, (problem) => report(problem, place('proxy', 'credentials')));
  return http === null && https === null ? 'none' : { http, https, noProxy, credentials: source };
}

function isProxyUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && /^(?:https?|socks5h?):$/.test(url.protocol) && url.hostname !== '' && !/["'\\\s\p{Cc}]/u.test(text);
}
