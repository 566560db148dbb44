import { goDurationMs } from '../base/text/go-duration.ts';
import { type HostHook, type HostHooks, NO_HOOKS } from '../host/hooks.ts';
import type { HookName } from '../host/plan/operation.ts';
import type { Layer } from './layer.ts';
import type { Scope } from './scope.ts';

const DEFAULT_TIMEOUT_SECONDS = 120;

/**
 * Resolves the hooks of a host. The last layer that declares a hook wins; an empty command removes the hook of a lower
 * layer.
 * @param layers lowest first
 */
export function hostHooks(layers: readonly Layer[], scope: Scope): HostHooks {
  if (!layers.some(({ written }) => written.hooks !== undefined)) return NO_HOOKS;
  return { beforeChange: hookOf(layers, scope, 'beforeChange'), afterChange: hookOf(layers, scope, 'afterChange') };
}

function hookOf(layers: readonly Layer[], scope: Scope, name: HookName): HostHook | null {
  const layer = layers.findLast(({ written }) => written.hooks?.[name] !== undefined);
  const written = layer?.written.hooks?.[name];
  if (layer === undefined || written === undefined || written.command.length === 0) return null;
  const resolved = (text: string, ...steps: readonly number[]): string =>
    scope.text(text, () => layer.place(['hooks', name, 'command', ...steps])) ?? text;
  const command =
    typeof written.command === 'string' ? ['sh', '-c', resolved(written.command)] : written.command.map((word, i) => resolved(word, i));
  const timeoutSeconds = written.timeout === undefined ? DEFAULT_TIMEOUT_SECONDS : Math.ceil(goDurationMs(written.timeout) / 1000);
  return { command, timeoutSeconds, layer: layer.label };
}
