"""Words of controls that change something, in several languages.

They are stems of the texts of buttons and links: buy, delete, send, save, pay, book, submit. A word counts if it leads the name of a
control, or stands in the short name of a button. Words that search, show or leave are recognized first: "Search orders" changes nothing.
"""

from __future__ import annotations

import re
import unicodedata

_LONGEST = 7
"""Words of a name that can be a command. A longer one is a sentence or a title."""
_LEADING = 4
"""Words of a link's name that can be a command."""


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


_READS = words_of(
    # English, German, French, Spanish, Italian, Portuguese, Dutch, Polish
    "go search find filter sort show view preview browse next previous back close hide expand collapse more details download print "
    "compare "
    "suche suchen finden filtern sortieren anzeigen zeigen vorschau weiter zuruck schliessen ausblenden mehr herunterladen drucken "
    "vergleichen rechercher chercher filtrer trier afficher voir apercu suivant precedent retour fermer masquer telecharger imprimer "
    "comparer buscar filtrar ordenar mostrar ver siguiente anterior volver cerrar ocultar mas descargar imprimir cerca cercare filtra "
    "ordina mostra vedi anteprima avanti indietro chiudi nascondi scarica stampa procurar visualizar proximo voltar fechar esconder "
    "baixar zoeken zoek filteren sorteren toon bekijk volgende vorige terug sluiten verbergen downloaden afdrukken szukaj znajdz filtruj "
    "sortuj pokaz zobacz dalej wstecz zamknij ukryj pobierz drukuj "
    # Russian
    "поиск искать наити найти фильтр показать просмотр далее назад закрыть скрыть скачать скачат печать"
)
"""Words that lead the name of a control which only reads."""
_WRITES = words_of(
    # English
    "add apply approve archive assign ban block book borrow buy cancel checkout clone comment commit confirm connect copy "
    "create deactivate "
    "decline delete deploy disable discard disconnect donate downvote duplicate enable enroll enrol erase execute favorite "
    "favourite follow "
    "hire import insert invite join launch like merge move mute order pay pin post publish purchase purge put reactivate register reject "
    "remove rename rent reorder reply report request reserve resolve restart restore revert revoke rollback rsvp run save schedule send "
    "share ship star start stop submit subscribe suspend sync terminate transfer trash unarchive unblock uninstall unfollow unlike "
    "unlink unpublish unsubscribe unwatch update upgrade upload upvote vote watch withdraw write yes install activate accept archive "
    # German
    "loschen entfernen kaufen bestellen bezahlen zahlen senden absenden abschicken verschicken speichern sichern buchen reservieren "
    "ubernehmen anlegen erstellen hinzufugen veroffentlichen freigeben genehmigen ablehnen annehmen bestatigen abonnieren kundigen "
    "stornieren verschieben umbenennen hochladen einreichen anmelden abmelden registrieren teilen antworten kommentieren folgen beitreten "
    "abschliessen aufgeben aktualisieren wiederherstellen zurucksetzen sperren deaktivieren aktivieren uberweisen spenden mieten "
    # French
    "acheter ajouter annuler appliquer approuver archiver commander confirmer creer supprimer effacer envoyer enregistrer "
    "sauvegarder payer "
    "regler reserver publier poster soumettre valider accepter refuser rejeter partager repondre commenter inscrire desinscrire abonner "
    "desabonner modifier renommer deplacer restaurer telverser televerser transferer louer retirer suivre "
    # Spanish
    "comprar anadir agregar cancelar aplicar aprobar archivar confirmar crear eliminar borrar quitar enviar guardar pagar "
    "reservar publicar "
    "aceptar rechazar compartir responder comentar suscribir suscribirse inscribirse registrarse actualizar mover renombrar "
    "restaurar subir "
    "transferir alquilar seguir donar pedir realizar tramitar "
    # Italian
    "acquista acquistare compra aggiungi annulla applica approva archivia conferma confermare crea elimina cancella rimuovi invia inviare "
    "salva salvare paga pagare prenota prenotare pubblica accetta rifiuta condividi rispondi commenta iscriviti abbonati aggiorna sposta "
    "rinomina ripristina carica trasferisci noleggia segui ordinare "
    # Portuguese
    "adicionar apagar excluir remover salvar gravar submeter assinar inscrever atualizar enviar encomendar finalizar "
    "partilhar compartilhar "
    "recusar aceitar criar alugar doar carregar "
    # Dutch
    "kopen koop bestel bestellen betaal betalen verwijder verwijderen wissen verstuur versturen verzend verzenden opslaan "
    "bewaren boek boeken "
    "reserveer reserveren toevoegen plaats plaatsen publiceer publiceren bevestig bevestigen goedkeuren afwijzen accepteren annuleer "
    "annuleren delen reageer reageren volg volgen abonneren inschrijven aanmelden afmelden bijwerken verplaatsen hernoemen herstellen "
    "uploaden indienen aanmaken maak huren doneer "
    # Polish
    "kup kupuje kupic zamow zamawiam zaplac place usun skasuj wyslij zapisz dodaj zarezerwuj rezerwuj opublikuj zatwierdz potwierdz odrzuc "
    "akceptuj anuluj utworz stworz udostepnij odpowiedz skomentuj subskrybuj zarejestruj przenies przywroc przeslij obserwuj wynajmij "
    "zloz aktualizuj "
    # Russian, without marks
    "купить удалить стереть отправить сохранить оплатить заказать оформить забронировать добавить создать опубликовать подтвердить принять "
    "отклонить отменить подписаться отписаться зарегистрироваться ответить комментировать поделиться переместить переименовать "
    "предложить послать разместить голосовать восстановить загрузить применить обновить перевести убрать записаться"
)
"""Words that indicate a change if they lead a name."""
_PHRASES = re.compile(
    r"\b(?:to (?:the |my |your )?(?:cart|basket|bag|wishlist)|in den (?:warenkorb|einkaufswagen)|zur kasse|kostenpflichtig|au panier|"
    r"al carrito|a la cesta|nel carrello|al carrello|(?:ao|no) carrinho|in winkelwagen|do koszyka|в корзину|log ?out|sign ?out|"
    r"sign ?up|abmelden|"
    r"place (?:an |the |your |my )?order|check ?out|mark as|turn (?:on|off)|set as|move to|go live|one click|1 click|jetzt kaufen)\b"
)
"""Parts of names that change something, wherever they stand."""
_EASTERN = re.compile(
    # Chinese, simplified and traditional
    r"购买|購買|下单|下單|付款|支付|结算|結算|结账|結帳|删除|刪除|移除|发送|發送|寄出|提交|保存|储存|儲存|预订|預訂|预约|預約|加入购物车|加入購物車|"
    r"添加|新增|创建|建立|发布|發佈|发表|發表|确认|確認|同意|拒绝|拒絕|取消订单|订阅|訂閱|关注|點讚|点赞|回复|回覆|上传|上傳|更新|注册|註冊|退出登录|转账|轉帳|撤销|分享"
    # Japanese
    r"|購入|買う|注文|支払|決済|削除|消去|送信|送る|投稿|保存|登録|予約|追加|作成|公開|承認|拒否|確定|申し込|申込|購読|フォロー|いいね|返信|アップロード|"
    r"カートに入れる|適用|変更する|退会|ログアウト|キャンセルする"
)
_EASTERN_READS = re.compile(r"搜索|搜尋|查看|查找|筛选|排序|下一页|返回|关闭|检索|検索|表示|絞り込|並べ替え|次へ|戻る|閉じる|詳細")
_EASTERN_LONGEST = 14
"""Characters of a name that can be a command, in a language without spaces."""
_YES = words_of(
    "yes ok okay confirm continue proceed sure agree accept ja bestatigen fortfahren einverstanden oui confirmer continuer accepter si "
    "confirmar continuar aceptar conferma continua accetta sim aceitar bevestigen doorgaan akkoord tak potwierdz kontynuuj zgadzam да "
    "подтвердить продолжить 是 是的 确定 確定 确认 確認 好 好的 はい ok 続行 実行"
)
_COPIES = words_of("copy copier kopieren copiar copia kopieer kopiuj копировать 复制 複製 コピー")


def plain(text: str) -> str:
    """Return a text in lower case without accents, with one space between words.

    >>> plain("  Löschen & Enregistré ")
    'loschen & enregistre'
    """
    decomposed = unicodedata.normalize("NFKD", text.casefold().replace("ł", "l"))
    return " ".join("".join(each for each in decomposed if not unicodedata.combining(each)).split())


def writing_word(name: str, *, link: bool = False) -> str:
    """Return the word or phrase of a control's name that announces a change; empty if none does.

    `link`: the control leads to an address. Its name has to be short and to begin with the word, since most links are titles.

    >>> writing_word("Jetzt kaufen"), writing_word("Search orders"), writing_word("How to delete a file in Linux", link=True)
    ('jetzt kaufen', '', '')
    """
    text = plain(name)
    if found := _eastern(unicodedata.normalize("NFKC", name)):
        return found
    words = re.findall(r"[^\W\d_]+", text)
    if not words or len(words) > _LONGEST or words[0] in _READS:
        return ""
    if phrase := _PHRASES.search(text):
        return phrase[0]
    if link:
        return words[0] if len(words) <= _LEADING and words[0] in _WRITES else ""
    return next((word for word in words if word in _WRITES), "") if len(words) <= _LEADING else words[0] if words[0] in _WRITES else ""


def agrees(name: str) -> bool:
    """Return whether a control's name agrees to an earlier question: Yes, OK, Confirm.

    >>> agrees("Ja, fortfahren"), agrees("Yesterday")
    (True, False)
    """
    words = re.findall(r"[^\W\d_]+", plain(name))
    return bool(words) and len(words) <= _LEADING and words[0] in _YES


def copies(name: str) -> bool:
    """Return whether a control's name announces a copy to the clipboard."""
    words = re.findall(r"[^\W\d_]+", plain(name))
    return bool(words) and len(words) <= _LEADING and words[0] in _COPIES


def _eastern(text: str) -> str:
    """Return the change that a name in Chinese or Japanese announces."""
    if len(text) > _EASTERN_LONGEST or _EASTERN_READS.search(text):
        return ""
    found = _EASTERN.search(text)
    return found[0] if found else ""
