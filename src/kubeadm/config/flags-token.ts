import type { FlagTable } from './flag-table.ts';
import { sets } from './flag-table.ts';
import * as read from './flag-values.ts';
import type { BootstrapToken, ModelSet } from './model.ts';

const TOKEN = 'InitConfiguration.bootstrapTokens[0]';

/** The flags and the argument (`bootstrap-token`) of `token create`, which define one token. */
export const TOKEN_FLAGS: FlagTable = {
  'bootstrap-token': sets(`${TOKEN}.token`, read.token, (models, token) => inToken(models, { token })),
  description: sets(`${TOKEN}.description`, read.text, (models, description) => inToken(models, { description })),
  ttl: sets(`${TOKEN}.ttl`, read.duration, (models, ttl) => inToken(models, { ttl })),
  usages: sets(`${TOKEN}.usages`, read.list, (models, usages) => inToken(models, { usages })),
  groups: sets(`${TOKEN}.groups`, read.list, (models, groups) => inToken(models, { groups })),
};

function inToken(models: ModelSet, part: BootstrapToken): ModelSet {
  return { ...models, init: { ...models.init, bootstrapTokens: [{ ...models.init?.bootstrapTokens?.[0], ...part }] } };
}
